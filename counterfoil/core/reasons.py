"""The closed list of reasons: why something was refused, moved, kept or held.

A reason is stored and counted as its code; people read its sentence and what to do next. A type's own `Permanent(code)` is
kept as text beside these, closed by its declaration. Never an exception's text, never a value of a payload.
"""

from __future__ import annotations

from enum import StrEnum

#: What becomes of a quarantined operation.
_STAYS = "Then replay it (`counterfoil dlq`); it stays quarantined, with its payload, until a person acts."


class Reason(StrEnum):
    """A code, a sentence for people (no full stop: a place may follow) and what to do next. Its `value` is the code."""

    sentence: str
    advice: str

    def __new__(cls, code: str, sentence: str, advice: str) -> Reason:
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        member.advice = advice
        return member

    # -- refused at the door: the caller still has a stack trace
    PAYLOAD_INVALID = "payload_invalid", "The payload does not fit its contract", "Correct the field named and enqueue again."
    PAYLOAD_TOO_LARGE = (
        "payload_too_large",
        "The payload is larger than a record may be",
        "Store the large part elsewhere and enqueue its address.",
    )
    NUMBER_OUT_OF_RANGE = (
        "number_out_of_range",
        "A number is outside the range of its field",
        "Correct it, or widen the contract.",
    )
    NOT_A_NUMBER = "not_a_number", "A number is NaN or infinite", "Hand in a finite number, or leave the field null."
    NAIVE_DATETIME = "naive_datetime", "A date and time has no time zone", "Hand in an aware datetime, best in UTC."
    FORBIDDEN_TEXT = (
        "forbidden_text",
        "A text holds U+0000 or a lone surrogate, which PostgreSQL and Kafka do not carry, or a character that terminals obey",
        "Remove or escape the character where the text is made.",
    )
    TEXT_TOO_LONG = "text_too_long", "A text is longer than its field allows", "Shorten it."
    MISSING_FIELD = "missing_field", "A field of the contract is missing", "Give it a value, or a default in the contract."
    UNKNOWN_FIELD = "unknown_field", "A field is not in the contract", "Remove it, or add it to the contract."
    WRONG_TYPE = "wrong_type", "A value has another type than its field", "Hand in a value of the declared type."
    NOT_A_SYMBOL = "not_a_symbol", "A value is not one of the symbols of its enumeration", "Use a symbol of the contract."
    DECIMAL_SCALE = (
        "decimal_scale",
        "A decimal has more digits than the contract's scale or precision",
        "Round it where the rounding rule is known.",
    )
    IDENTITY_CONFLICT = (
        "identity_conflict",
        "An operation with this identity exists, with other content",
        "Use the identity or version of the new content; the first operation is unchanged.",
    )
    UNKNOWN_OPERATION = "unknown_operation", "The ledger has no such operation", "Check the id and the ledger's name."
    NOT_PAUSED = "not_paused", "It is not paused", "`counterfoil sinks list` shows what is."
    UNKNOWN_SINK = (
        "unknown_sink",
        "No declared operation type has a sink of that name",
        "`counterfoil sinks list` shows those that there are.",
    )
    LEDGER_NOT_INITIALISED = "ledger_not_initialised", "This database holds no ledger", "Run `counterfoil init`."
    CONTRACT_MISSING = (
        "contract_missing",
        "The type's contract, or its line in the registry lock, was not found",
        "Check the path of the contract and write `registry.lock` beside it.",
    )
    CONTRACT_MISMATCH = (
        "contract_mismatch",
        "The contract is not the one that the registry lock names, or does not fit the payload's class",
        "Register the new contract, then renew the lock.",
    )
    VERSION_NOT_INTEGER = "version_not_integer", "The version is not an integer of 64 bits", "Return an int from `version`."
    KEY_NOT_ALLOWED = (
        "key_not_allowed",
        "A part of an identity or entity is not a text, an integer or a UUID",
        "Return str, int, UUID or a tuple of them.",
    )
    KEY_EMPTY = "key_empty", "An identity or entity is empty", "Return at least one part that is not empty."
    KEY_TOO_LONG = "key_too_long", "An identity or entity is longer than 512 bytes", "Use a shorter name for the entity."
    CALLER_NOT_SYNC = (
        "caller_not_sync",
        "An asynchronous session or connection was handed in",
        "Call through `await session.run_sync(...)`.",
    )
    NO_TRANSACTION = (
        "no_transaction",
        "The connection commits every statement by itself, so nothing could be written together",
        "Hand in a connection inside a transaction, not in AUTOCOMMIT.",
    )
    CALLER_IS_ENGINE = (
        "caller_is_engine",
        "An Engine was handed in, which has no transaction that your own rows are in",
        "Use `with engine.begin() as connection:`, and hand in `connection`.",
    )
    CALLER_UNKNOWN = (
        "caller_unknown",
        "What was handed in is no SQLAlchemy Connection or Session",
        "Hand in the one in whose transaction your own rows are written.",
    )
    REASON_MISSING = (
        "reason_missing",
        "An act needs a reason, for whoever reads it later",
        "Say who asked for it and why, like 'asked by the customer, ticket 4711'.",
    )
    LEDGER_NAME = (
        "ledger_name",
        "The name is not one that a ledger can have",
        "Use 1 to 40 lower-case letters, digits, `_` and `-`, a letter first; it becomes part of every id, topic and key.",
    )
    LEDGER_NAME_FIXED = (
        "ledger_name_fixed",
        "This database holds a ledger of another name, and a ledger's name never changes",
        "Correct the setting, or use another database.",
    )
    WRONG_KIND_OF_TYPE = "wrong_kind_of_type", "This act is not for this kind of operation type", "Read the type's declaration."
    WRONG_STATE = "wrong_state", "The operation's state does not allow this act", "Read `counterfoil operations show`."
    EVIDENCE_STALE = (
        "evidence_stale",
        "The operation has moved since this evidence was shown",
        "Read the newest evidence, then decide again.",
    )
    EVIDENCE_AGAINST = (
        "evidence_against",
        "The newest evidence says the opposite of this act",
        "Read the evidence; have it probed again if you do not believe it.",
    )
    INSIDE_WAIT = (
        "inside_wait",
        "A request of an earlier attempt may still land after what was seen",
        "Wait for a probe after the absence wait, then decide again.",
    )
    ENTITY_MOVED_ON = (
        "entity_moved_on",
        "Later operations of the entity have run, so this one is never sent again",
        "Enqueue a new operation that repairs it.",
    )

    # -- why an operation moved
    ACCEPTED = "accepted", "The caller's transaction wrote the operation", "Nothing."
    REDELIVERED = "redelivered", "The record that it was admitted from came again", "Nothing."
    COPIED = "copied", "Another record of the operation came, and it needs none", "Nothing."
    ADMITTED = "admitted", "A worker took the operation and counted the attempt", "Nothing."
    RECEIPT = "receipt", "The sink answered with a receipt", "Nothing."
    IN_LEDGER_COMMIT = "in_ledger_commit", "The effect and its outcome are one commit", "Nothing."
    TEMPORARY_FAILURE = "temporary_failure", "Certainly not applied; later may differ", "Nothing: it is tried again when due."
    NOT_SENT_SHUTDOWN = "not_sent_shutdown", "The worker stopped before anything was sent", "Nothing: it is due now."
    NOT_SENT_LEASE = "not_sent_lease", "The worker's lease was over before anything was sent", "Look at the worker's load."
    NOT_SENT_TIME = (
        "not_sent_time",
        "Too little of the attempt's time was left to send it",
        "If it comes often, lower the worker's batch or raise its concurrency.",
    )
    NOT_SENT_BREAKER = (
        "not_sent_breaker",
        "The sink's breaker opened before anything was sent",
        "Look at the sink: `counterfoil sinks show` says since when it is down.",
    )
    NOT_SENT_PAUSED = (
        "not_sent_paused",
        "Its type or its sink was paused before anything was sent",
        "Nothing: it goes on when the pause ends.",
    )
    PERMANENT_FAILURE = (
        "permanent_failure",
        "Certainly not applied, and repeating cannot help",
        f"Correct the payload or the sink. {_STAYS}",
    )
    TRIES_USED_UP = "tries_used_up", "Every try was used", f"Remove the cause. {_STAYS}"
    TIMEOUT = "timeout", "No answer within the time-out; it may have been applied", "It is probed, or sent again where harmless."
    CONNECTION_LOST = (
        "connection_lost",
        "The connection broke after sending; it may have been applied",
        "It is probed, or sent again where harmless.",
    )
    UNCERTAIN_ANSWER = (
        "uncertain_answer",
        "The effect said that it may have been applied",
        "It is probed, or sent again where harmless.",
    )
    UNCLASSIFIED_EXCEPTION = (
        "unclassified_exception",
        "The effect raised something that nobody sorted; it may have been applied",
        "Look at its class and place; sort it in `Errors` if it proves that nothing was applied.",
    )
    EXCEPTION_ROLLED_BACK = (
        "exception_rolled_back",
        "The effect raised something that nobody sorted; nothing of it is left, since its transaction was rolled back",
        "Look at its class and place; it is tried again while tries are left.",
    )
    EFFECT_ENDED_TRANSACTION = (
        "effect_ended_transaction",
        "The effect ended the ledger's transaction, or tried to",
        "Correct the effect: it must not commit or roll back. Look whether rows of it are there: then nothing is promised.",
    )
    WRONG_ANSWER = "wrong_answer", "The effect returned something that is not a receipt", "Return a `Receipt` from the effect."
    LEASE_OVER = "lease_over", "The worker that held it was not heard of for a lease", "Look for a worker that died or stalled."
    ATTEMPT_TIME_OVER = (
        "attempt_time_over",
        "The attempt's maximum run time is over",
        "Look for a call that ignores its time-out.",
    )
    CANCELLED = "cancelled", "It was cancelled; it has no effect", "Nothing."
    CANCEL_ASKED = (
        "cancel_asked",
        "A cancel is remembered and honoured at the next legal step",
        "Wait for the probe or the answer.",
    )
    STILL_WANTED_FAILED = (
        "still_wanted_failed",
        "The type's `still_wanted` raised, or did not answer with a `Wanted`; nothing was sent",
        "Correct `still_wanted`, then have it run again.",
    )
    SUPERSEDED = "superseded", "A newer version of the entity replaced it; it has no effect", "Nothing."
    LATER_SENT = (
        "later_sent",
        "A later operation of its entity was sent: it is looked up instead of being sent again",
        "Wait for the probe's verdict.",
    )
    TURN_CAME = "turn_came", "The operation of its entity that it waited for is over: its command record is sent", "Nothing."
    OVERTAKEN = "overtaken", "The sink shows a newer version that is ours; its own effect may have existed", "Nothing."
    NO_PROBE_RESEND = (
        "no_probe_resend",
        "Nobody can ask this sink, and it keeps our key: the same bytes are sent again under it",
        "Nothing: the answer settles both attempts.",
    )
    PROBE_FIRST = "probe_first", "An earlier attempt may have been applied: look before sending", "Wait for the probe's verdict."
    OUTCOME_RECORDED = "outcome_recorded", "The program that acts recorded its outcome", "Nothing."
    HOLD_OVER = "hold_over", "Its record was held past its deadline", f"Start a worker that can do it. {_STAYS}"
    CORRECT = "correct", "The sink shows what was expected", "Nothing."
    MISSING = "missing", "Agreeing probes past the absence wait found nothing", "Read the evidence, then decide."
    DIVERGENT = "divergent", "The sink shows something else than was expected", "Compare the fields shown, then decide."
    AMBIGUOUS = "ambiguous", "The probes gave no answer to rely on", "Look at the sink, then decide."
    NO_PROBE = (
        "no_probe",
        "It may have been applied, nobody can ask this sink, and it may not be sent again",
        "Look at the sink by hand, then decide.",
    )
    DECIDED = "decided", "A person decided, with reason and evidence", "Nothing."
    LOOK_FIRST = "look_first", "A person asked for a probe before anything else", "Wait for the probe's verdict."
    REPLAYED = "replayed", "A person granted new tries", "Nothing."
    COMPENSATION = "compensation", "A linked operation undoes the effect", "Look at the linked operation."
    RECOVERED = "recovered", "A confirmed recovery plan set this state", "Nothing."

    # -- answers that were kept as evidence only
    STALE_ATTEMPT = "stale_attempt", "An answer of an attempt that is not the latest; nothing changed", "Nothing."
    OLD_REVISION = "old_revision", "A receipt for a revision that is no longer the current one", "Look first, then decide."
    LATE_ANSWER = (
        "late_answer",
        "An answer that came when it could no longer count; nothing changed",
        "Read it with the evidence.",
    )

    # -- records that this consumer cannot handle, or holds
    UNDECODABLE_FRAME = "undecodable_frame", "The value does not begin with a schema id", "Find the producer of the record."
    UNDECODABLE_VALUE = "undecodable_value", "The value does not decode with its schema", "Find the producer of the record."
    UNKNOWN_SCHEMA_ID = "unknown_schema_id", "The schema id is not known here", "Restore the schema, or deploy its contract."
    SCHEMA_NOT_READ = (
        "schema_not_read",
        "The schema is known, but this version does not read it",
        "Deploy workers with the newer contract.",
    )
    UNKNOWN_TYPE = "unknown_type", "No operation type of that name is installed", "Deploy workers that have the type."
    UNKNOWN_OPERATION_RECORD = (
        "unknown_operation_record",
        "The ledger has no operation for this record; it is held and never run",
        "Look for a restored database or a forged record; `recover` has it probed.",
    )
    REVISION_MISMATCH = (
        "revision_mismatch",
        "The record carries another revision than the ledger's",
        "Nothing: the current one is sent.",
    )
    DIGEST_MISMATCH = (
        "digest_mismatch",
        "The record's bytes are not the ones that the ledger wrote",
        "Find who can write to the topic; the ledger's own bytes are unchanged.",
    )
    NO_CAPABLE_WORKER = "no_capable_worker", "No worker can do this type or contract version", "Deploy one: it is released then."
    VALUE_TOO_LARGE = (
        "value_too_large",
        "The record's value is larger than the contract allows",
        "Find the producer of the record.",
    )
    NULL_VALUE = "null_value", "A command record without a value", "Find the producer of the record."
    KILLS_THE_PROCESS = (
        "kills_the_process",
        "Workers died while they decoded this record, three times; it is not decoded any more",
        "Read its bytes outside a worker, and correct what they meet: the payload's class, or the library below it.",
    )

    # -- why an act of a person was refused
    ROLE_NEEDED = (
        "role_needed",
        "The database login has not the role that this act needs",
        "Ask an administrator to grant the role that is named, or somebody who has it to act.",
    )
    ALREADY_FINAL = "already_final", "The operation is final", "Nothing: enqueue a new one where something else is wanted."
    NOT_QUARANTINED = (
        "not_quarantined",
        "The operation is not quarantined, or not any more: somebody else was first",
        "Read `counterfoil operations show`.",
    )
    UNRESOLVED_ATTEMPT = (
        "unresolved_attempt",
        "An attempt has no outcome that anybody is sure of",
        "Look first (`counterfoil dlq look-first`): nothing else is allowed until a probe has spoken.",
    )
    MAY_HAVE_BEEN_APPLIED = (
        "may_have_been_applied",
        "An earlier attempt may have reached the sink",
        "Look first (`counterfoil dlq look-first`): nothing else is allowed until a probe has spoken.",
    )
    PAST_KEY_HORIZON = (
        "past_key_horizon",
        "An earlier attempt may have reached the sink, which has forgotten its key by now",
        "Look first (`counterfoil dlq look-first`): a repeat could be a second effect.",
    )
    NOTHING_IN_DOUBT = (
        "nothing_in_doubt",
        "No attempt may have reached the sink: there is nothing to look for",
        "Replay or discard it.",
    )
    NOTHING_CHANGED = (
        "nothing_changed",
        "Neither its payload nor what runs it has changed, so it would fail in the same way",
        "Correct it (`counterfoil dlq fix`), name the new consumer (`--consumer`), or insist (`--force`).",
    )
    REPLAYED_TOO_OFTEN = (
        "replayed_too_often",
        "It was replayed five times for the same content and came back each time",
        "Correct it (`counterfoil dlq fix`), discard it, or insist (`--force`).",
    )
    SOMEBODY_WAS_FIRST = (
        "somebody_was_first",
        "Somebody else has changed it since it was read",
        "Read it again, then decide.",
    )
    REVISED_TOO_OFTEN = (
        "revised_too_often",
        "It has a hundred revisions",
        "Discard it, and enqueue what is wanted under another identity.",
    )
    IDENTITY_CHANGED = (
        "identity_changed",
        "The correction would make it another operation",
        "Leave the fields of its identity, entity and version as they are; enqueue a new operation for another one.",
    )
    ASK_ITS_OPERATION = (
        "ask_its_operation",
        "The record is of an operation that does not wait for it",
        "Act on the operation; discard the record.",
    )
    NO_DIFFERENCE = ("no_difference", "The correction changes nothing", "Change the field that is wrong.")
    FILTER_EMPTY = (
        "filter_empty",
        "A selection without any filter is refused: it would be everything",
        "Name a type, a reason, ids, or a time.",
    )
    NOTHING_SELECTED = ("nothing_selected", "No dead letter fits the filter", "Look with `counterfoil dlq list`.")
    UNKNOWN_PLAN = ("unknown_plan", "The ledger has no such plan", "`counterfoil dlq plans` lists them.")
    PLAN_NOT_FROZEN = ("plan_not_frozen", "The plan's selection was never frozen to its end", "Make a new plan.")
    PLAN_STOPPED = ("plan_stopped", "The plan was stopped by a person", "Make a new plan for what is left.")
    UNKNOWN_HELD = ("unknown_held", "The ledger has no held record of this id", "Look with `counterfoil held list`.")
    NOT_HELD = (
        "not_held",
        "The record is not held any more: it was let go, or its deadline passed",
        "Look with `counterfoil held show`, then at its operation.",
    )
    NOTHING_HELD = ("nothing_held", "No held record fits the filter", "Look with `counterfoil held list`.")
    UNKNOWN_CAUSE = ("unknown_cause", "The ledger has no dead letter of this id", "Look with `counterfoil dlq list`.")

    # -- rows that could not be published
    MESSAGE_TOO_LARGE = "message_too_large", "The broker refuses a record of this size", "Raise the topic's limit, or shrink it."
    KEY_MISSING = "key_missing", "A row without a key cannot be published", "Report it: no part of the system writes one."
    TOPIC_MISSING = "topic_missing", "The topic does not exist", "Run `counterfoil topics apply`; nothing is created by itself."
    TOPIC_WRONG = (
        "topic_wrong",
        "The topic does not keep what it must",
        "Run `counterfoil topics verify`: it names what is wrong and what to do.",
    )
    BROKER_REFUSED = "broker_refused", "The broker refused the record for good", "Check the topic's settings and permissions."
    DELIVERY_UNKNOWN = "delivery_unknown", "The broker did not say whether it has the record", "Nothing: it is sent again."


def reason_sentence(code: str) -> str:
    """The sentence for a stored reason; a code that is none of ours is the operation type's own."""
    try:
        return Reason(code).sentence  # type: ignore[call-arg]
    except ValueError:
        return "A code of the operation type"


def reason_advice(code: str) -> str:
    """What to do next about a stored reason."""
    try:
        return Reason(code).advice  # type: ignore[call-arg]
    except ValueError:
        return "Ask the owner of the operation type."
