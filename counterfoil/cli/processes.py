"""`counterfoil relay` and `counterfoil worker`: processes that run until SIGTERM, and log to standard error.

They set the process's logging up before anything else may log. Exit codes are those of every command.
"""

import logging
import sys
from typing import Annotated

import typer

from counterfoil import telemetry
from counterfoil.core.events import LogEvent
from counterfoil.settings import Settings, load_operations, read_settings

LinesAsJson = Annotated[bool, typer.Option("--json", help="Log in JSON lines; default where standard error is no terminal.")]

#: Lines that come once or more an operation; `log_operations = false` leaves them out.
PER_OPERATION = frozenset(
    {
        LogEvent.RECEIVED,
        LogEvent.RESULT_SAVED,
        LogEvent.RETRY_SCHEDULED,
        LogEvent.NOT_APPLICABLE,
        LogEvent.ACK_SENT,
        LogEvent.SENT_AGAIN,
        LogEvent.RECEIPT_KEPT,
        LogEvent.ANSWER_KEPT,
    }
)


def set_logging_up(settings: Settings, *, json: bool) -> None:
    """This process's logging, from its settings."""
    telemetry.configure(
        json or not sys.stderr.isatty(),
        own_loggers=settings.own_loggers,
        drop=frozenset() if settings.log_operations else PER_OPERATION,
        level=logging.INFO if settings.own_loggers else logging.WARNING,
    )
    if settings.embedded:
        telemetry.alarm(LogEvent.TOPIC_WRONG, kind="embedded", ledger=settings.ledger)  # no topic setting holds there


def _end(code: int) -> None:
    telemetry.log_counts()
    raise typer.Exit(code)


def relay(json: LinesAsJson = False) -> None:
    """Publish outbox rows to Kafka, until SIGTERM. Any number of relays share the work."""
    settings = read_settings()
    set_logging_up(settings, json=json)
    operations = load_operations(settings.operations)
    from counterfoil.streams.relay.process import run

    _end(run(settings, operations))


def worker(json: LinesAsJson = False) -> None:
    """Take command records, run their effects, settle and commit, until SIGTERM. Any number of workers share the work."""
    settings = read_settings()
    set_logging_up(settings, json=json)
    operations = load_operations(settings.operations)
    from counterfoil.streams.worker.process import run

    _end(run(settings, operations))
