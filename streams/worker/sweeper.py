"""What is due: the sweepers of queued, retry_wait and running, of held records, and of uncertain attempts that nobody can probe.

Level-triggered by the ledger's own clock, so nothing is forgotten that Kafka or a worker lost (L5). After a restart of the
database it waits one lease: time in which nobody could write a heartbeat does not count against anybody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from counterfoil.core.events import LogEvent
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules
from counterfoil.failpoints import failpoint
from counterfoil.ledger.due import end_leases, resend_unprobed, send_due
from counterfoil.ledger.moves import Writer, Written
from counterfoil.ledger.releasing import LetGo, end_holds, release_capable
from counterfoil.ledger.restarts import database_started
from counterfoil.streams.held.taking_up import Rounds, TakenUp
from counterfoil.streams.ledger_calls import LedgerCalls
from counterfoil.streams.outcome_lines import tell_written
from counterfoil.telemetry import alarm, count, log

#: Passes of one look; a backlog is worked off over several looks, between which other calls get their turn.
PASSES = 20


class Pace(NamedTuple):
    """How a sweeper goes about it."""

    limit: int  #: operations of one pass
    lease: timedelta
    resend_after: timedelta
    review_within: timedelta


class Quiet:
    """When a sweeper may act after the database came (back) up. Pure; instants are the ledger's."""

    def __init__(self, lease: timedelta) -> None:
        self._lease = lease
        self._started: datetime | None = None
        self._until: datetime | None = None

    def may_sweep(self, started: datetime, now: datetime) -> bool:
        """`started`: when the database was started, as it says itself."""
        if started != self._started:
            first_look = self._started is None
            self._started = started
            self._until = (started if first_look else now) + self._lease
        return self._until is None or now >= self._until


class Sweeper:
    """One process's sweepers; any number of processes may sweep. Blocks its thread."""

    def __init__(self, calls: LedgerCalls, writer: Writer, rules: Mapping[str, Rules], pace: Pace) -> None:
        self._calls = calls
        self._writer = writer
        self._rules = rules
        self._pace = pace
        self._quiet = Quiet(pace.lease)
        self._unnamed = Rounds(pace.review_within)

    def look(self) -> int:
        """One look at everything that is due; answers how many operations were moved or sent."""
        started, now = self._calls.once(database_started)
        if not self._quiet.may_sweep(started, now):
            return 0
        writer, rules, limit = self._writer, self._rules, self._pace.limit
        resend_after = self._pace.resend_after
        return (
            self._all("running", "due.before_leases_commit", lambda c: end_leases(c, writer, rules, limit=limit))
            + self._all(
                "awaiting_confirmation",
                "due.before_resend_commit",
                lambda c: resend_unprobed(c, writer, rules, limit=limit, look_again=resend_after),
            )
            + self._holds()
            + self._all("queued", "due.before_send_commit", lambda c: send_due(c, writer, limit=limit, resend_after=resend_after))
        )

    def _holds(self) -> int:
        """What a live worker can do is let go before what is due is sent; what nobody could do in time is given up."""
        limit = self._pace.limit
        total = self._take_up()

        def let_go(connection: Connection) -> list[LetGo]:
            gone = release_capable(connection, limit=limit)
            if gone:
                failpoint("held.before_release_commit")
            return gone

        def end(connection: Connection) -> tuple[int, list[Written]]:
            ended, written = end_holds(connection, self._writer, self._rules, limit=limit)
            if ended:
                failpoint("held.before_end_commit")
            return ended, written

        for _ in range(PASSES):
            gone = self._calls.once(let_go)
            tell_let_go(gone)
            ended, written = self._calls.once(end)
            tell_written(written)
            total += len(gone) + ended
            if max(len(gone), ended) < limit:
                break
        return total

    def _take_up(self) -> int:
        """Records without an operation, of which the ledger may have it by now."""

        def unit(connection: Connection) -> TakenUp:
            taken = self._unnamed.look(connection)
            if taken.let_go or taken.given_up:
                failpoint("held.before_release_commit")
            return taken

        taken = self._calls.once(unit)
        tell_let_go(taken.let_go)
        for one in taken.given_up:
            why = Reason.DIGEST_MISMATCH.value
            alarm(LogEvent.QUARANTINED, type=one.type, topic=one.topic, partition=one.partition, offset=one.offset, reason=why)
        return len(taken.let_go) + len(taken.given_up)

    def _all(self, state: str, place: str, sweep: Callable[[Connection], list[Written]]) -> int:
        def unit(connection: Connection) -> list[Written]:
            moved = sweep(connection)
            if moved:
                failpoint(place)
            return moved

        total = 0
        for _ in range(PASSES):
            moved = self._calls.once(unit)
            tell_written(moved)
            total += len(moved)
            if len(moved) < self._pace.limit:
                break
        if total:
            failpoint("due.after_sweep")
            log(LogEvent.SWEPT, state=state, count=total)
            count("due_taken", total, state=state)
        return total


def tell_let_go(gone: Sequence[LetGo]) -> None:
    """A line and a count for each type and reason."""
    for (name, reason), total in Counter((one.type, one.reason) for one in gone).items():
        log(LogEvent.RELEASED, type=name, reason=reason, count=total)
        count("records_released", total, operation_type=name, reason=reason)
