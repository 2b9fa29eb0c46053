"""What went wrong, for the person at the command line: what happened, to which operation, what to do, and the exit code.

It sorts exceptions by class and by closed codes. It must never print an exception's own text or a traceback: they hold URLs,
parameters and payloads.
"""

import sys
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from counterfoil.cli.exits import Exit
from counterfoil.core.errors import CounterfoilError, Refused
from counterfoil.ledger.away import is_away, sqlstate
from counterfoil.settings import SettingsError
from counterfoil.telemetry import last_place


@dataclass(eq=False)
class Trouble(Exception):  # not frozen: contextlib writes an exception's traceback into it
    """A command's end that is no success."""

    code: str  #: closed, for programs
    what: str  #: what happened
    advice: str  #: what to do next
    exit: Exit
    subject: str | None = None  #: the operation, type or setting that it happened to

    def as_json(self) -> dict[str, object]:
        """The one object that a command with --json prints instead of its answer."""
        told = {"code": self.code, "what": self.what, "subject": self.subject, "advice": self.advice, "exit": int(self.exit)}
        return {"error": told}


#: PostgreSQL's SQLSTATEs, longest match first, that a person can do something about.
SQLSTATES: dict[str, tuple[str, str, str, Exit]] = {
    "42501": (
        "database_rights",
        "The database login lacks a right.",
        "Grant it the schema counterfoil, or use its owner.",
        Exit.REFUSED,
    ),
    "57014": (
        "database_slow",
        "The database gave up after 30 seconds, and changed nothing.",
        "Narrow a list by --state or --newer-than; run anything else again.",
        Exit.REFUSED,
    ),
    "40001": ("at_the_same_time", "Somebody else changed the same at the same moment.", "Run it again.", Exit.REFUSED),
    "40P01": ("at_the_same_time", "Somebody else changed the same at the same moment.", "Run it again.", Exit.REFUSED),
    "42P01": ("ledger_old", "The ledger is missing or older than this program.", "Run `counterfoil init`.", Exit.REFUSED),
    "42703": ("ledger_old", "The ledger is older than this program.", "Run `counterfoil init`.", Exit.REFUSED),
    "42883": ("ledger_old", "The ledger is missing or older than this program.", "Run `counterfoil init`.", Exit.REFUSED),
    "3F000": ("ledger_not_initialised", "This database holds no ledger.", "Run `counterfoil init`.", Exit.REFUSED),
    "25006": (
        "database_read_only",
        "The database takes no writes: it is a standby.",
        "Point `database` at the primary.",
        Exit.UNREACHABLE,
    ),
    "53300": ("database_full", "The database takes no more connections.", "Wait, or lower `database_pool`.", Exit.UNREACHABLE),
}
#: Beside a database that is away: one that does not let this login in, or is not there.
SHUT_OUT = ("28", "3D")


def sorted_out(error: BaseException) -> Trouble:
    """The trouble that an exception means; one that nobody sorted is told by its class and its last place alone."""
    match error:
        case Trouble():
            return error
        case SettingsError():
            return Trouble("settings", str(error), "Correct them; `counterfoil check` looks at all of them.", Exit.USAGE)
        case Refused():
            what = error.reason.sentence + (f" (at {error.path})." if error.path else ".")
            return Trouble(error.reason.value, what, error.reason.advice, Exit.REFUSED, error.subject)
        case CounterfoilError():
            return Trouble("refused", str(error), "Correct what it names.", Exit.REFUSED)
        case SQLAlchemyError():
            return _database(error)
    return _kafka(error) or _fault(error)


def database_unreachable() -> Trouble:
    """No connection to the database, for whichever reason: its text has the address and the user, so it is not repeated."""
    return Trouble(
        "database_unreachable",
        "The database cannot be reached, or does not let this login in.",
        "Check host, port, database, user and password of the setting `database`, and that PostgreSQL runs.",
        Exit.UNREACHABLE,
    )


def _database(error: SQLAlchemyError) -> Trouble:
    state = sqlstate(error)
    if state in SQLSTATES:
        code, what, advice, exit_code = SQLSTATES[state]
        return Trouble(code, what, advice, exit_code)
    if is_away(error) or (state or "").startswith(SHUT_OUT):
        return database_unreachable()
    if state is None:
        return _fault(error)
    return Trouble(
        "database",
        f"The database refused a statement (SQLSTATE {state}).",
        "Look the code up; then run the same again.",
        Exit.FAULT,
    )


def _kafka(error: BaseException) -> Trouble | None:
    """librdkafka's errors have a closed name; known without importing Kafka for commands that need none."""
    library = sys.modules.get("confluent_kafka")
    if library is None or not isinstance(error, library.KafkaException):
        return None
    name = error.args[0].name() if error.args and hasattr(error.args[0], "name") else "unknown"
    return Trouble(
        "broker", f"A broker cannot be reached, or refused ({name}).", "Check `brokers`, and that Kafka runs.", Exit.UNREACHABLE
    )


def _fault(error: BaseException) -> Trouble:
    what = f"An error that nobody expected: {type(error).__name__} at {last_place(error.__traceback__)}."
    return Trouble("fault", what, "Report class and place; nothing half done was committed.", Exit.FAULT)
