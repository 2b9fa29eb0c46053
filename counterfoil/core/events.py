"""The closed lists of what is written down: events of the ledger and lines of the log.

An event is a row of an operation, for ever; a log line is for whoever watches a process. Neither carries a payload, a
secret or an exception's text. This module decides nothing.
"""

from __future__ import annotations

from enum import StrEnum


class EventKind(StrEnum):
    """Kinds of rows in the ledger's `event` table."""

    # -- transitions
    ACCEPTED = "accepted"  #: a caller's transaction wrote the operation
    ADMITTED = "admitted"  #: a worker counted an attempt, before the effect was called
    RESULT_SAVED = "result_saved"  #: a receipt is saved
    RETRY_SCHEDULED = "retry_scheduled"  #: it waits for a due time, then is sent again
    AWAITING_CONFIRMATION = "awaiting_confirmation"  #: it may have been applied
    QUARANTINED = "quarantined"  #: certainly not applied; its dead letter is written beside it
    NOT_APPLICABLE = "not_applicable"  #: cancelled, superseded or overtaken
    CONFIRMED = "confirmed"  #: a verdict or a person found the effect correct
    REQUEUED = "requeued"  #: a verdict or a person sends it again
    MANUAL_REVIEW = "manual_review"  #: handed to a person
    COMPENSATING = "compensating"  #: a linked operation was enqueued
    COMPENSATED = "compensated"  #: the linked operation ended with its effect
    REPLAYED = "replayed"  #: a person took it out of quarantine
    RECOVERED = "recovered"  #: set by a confirmed recovery plan
    # -- facts beside transitions: the state is the same afterwards
    SENT_AGAIN = "sent_again"  #: its command record was written to the outbox again
    REDELIVERED = "redelivered"  #: the record that it was admitted from came again
    COPIED = "copied"  #: another record of it came
    RECEIPT_KEPT = "receipt_kept"  #: a receipt that could no longer count, kept as evidence
    ANSWER_KEPT = "answer_kept"  #: any other answer that could no longer count
    CANCEL_ASKED = "cancel_asked"  #: remembered, honoured at the next legal step
    RECORDED = "recorded"  #: the program that acts recorded an outcome (`DoneElsewhere`)
    FIXED = "fixed"  #: a person gave its payload a new revision; it is still quarantined
    PROBED = "probed"  #: a probe's observation, with its evidence


class LogEvent(StrEnum):
    """Names of log lines, the same from every process."""

    # -- of one operation, in the order in which they come
    RECEIVED = "received"  #: a record came; `redelivered` says whether it was known
    RESULT_SAVED = "result_saved"  #: the attempt's receipt is saved
    RETRY_SCHEDULED = "retry_scheduled"  #: sent again when due
    QUARANTINED = "quarantined"  #: certainly not applied; its dead letter is written
    AWAITING_CONFIRMATION = "awaiting_confirmation"  #: it may have been applied
    NOT_APPLICABLE = "not_applicable"  #: cancelled or superseded: no effect
    ACK_SENT = "ack_sent"  #: an offset above its record is committed
    HELD = "held"  #: a record kept raw, not run
    RELEASED = "released"  #: held records let go, with their count: a worker can do them now, or a person said so
    SUSPECTED = "suspected"  #: alarm: a worker died while it decoded these records; each is decoded alone now
    SENT_AGAIN = "sent_again"  #: its command record is written again
    RECEIPT_KEPT = "receipt_kept"  #: a late receipt, evidence only
    ANSWER_KEPT = "answer_kept"  #: a late answer, evidence only
    # -- of the relay and the topics
    PUBLISHED = "published"  #: a batch, with its count
    PUBLISH_UNKNOWN = "publish_unknown"  #: the broker did not say; sent again
    ROW_REFUSED = "row_refused"  #: a row that can never be sent moved aside
    OUTBOX_STALLED = "outbox_stalled"  #: alarm: the oldest unpublished row has waited too long
    SHARDS_TAKEN = "shards_taken"  #: this relay publishes these parts of the outbox now
    SHARDS_GIVEN_BACK = "shards_given_back"  #: to another relay, or at the end
    SHARD_LOST = "shard_lost"  #: alarm: its lease was over before it was renewed
    TOPIC_MISSING = "topic_missing"  #: alarm: its rows wait
    TOPIC_WRONG = "topic_wrong"  #: alarm: what is wrong, and whether its rows wait
    TOPIC_GOOD = "topic_good"  #: what was wrong is right again
    # -- of a process
    STARTED = "started"  #: it does its work from here on
    STOPPING = "stopping"  #: told to end; what runs has its grace
    STOPPED = "stopped"  #: with its exit code
    LEASE_TAKEN = "lease_taken"  #: a session in the ledger
    LEASE_LOST = "lease_lost"  #: alarm: the session was over; a new one is opened
    PARTITIONS_ASSIGNED = "partitions_assigned"  #: by the consumer group
    PARTITIONS_REVOKED = "partitions_revoked"  #: by the consumer group
    PARTITIONS_PAUSED = "partitions_paused"  #: so many: hands are full
    PARTITIONS_RESUMED = "partitions_resumed"  #: so many: there is room again
    DATABASE_LOST = "database_lost"  #: alarm; after `stop_after` the process leaves
    DATABASE_BACK = "database_back"  #: with the seconds it was away
    BROKER_LOST = "broker_lost"  #: alarm; after `stop_after` the process leaves
    BROKER_BACK = "broker_back"  #: with the seconds it was away
    COMMIT_FAILED = "commit_failed"  #: of offsets; made again with the next
    NO_PROGRESS = "no_progress"  #: alarm: lag, and nothing finished for `progress_within`; the worker leaves
    THREADS_LOST = "threads_lost"  #: alarm: too many calls past their time-out; the worker leaves
    BREAKER_OPENED = "breaker_opened"  #: alarm: a sink is down; nothing is sent to it but a probe now and then
    BREAKER_PROBED = "breaker_probed"  #: the sink is still down; the next probe comes later
    BREAKER_CLOSED = "breaker_closed"  #: the sink answers again
    PAUSED = "paused"  #: this worker runs no more of a type, or of a sink's types, until it is resumed
    RESUMED = "resumed"  #: this worker runs it again
    SWEPT = "swept"  #: a pass of a due sweeper, with its counts
    UNEXPECTED = "unexpected"  #: an error that nobody sorted; its class only
