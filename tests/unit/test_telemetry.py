"""Telemetry: a closed list of lines, and no exception text, traceback or payload from anybody (S18)."""

import io
import json
import logging
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from counterfoil import telemetry
from counterfoil.core.events import LogEvent
from counterfoil.core.reasons import Reason
from counterfoil.core.states import State
from counterfoil.telemetry import counters, tracing
from counterfoil.telemetry.foreign import ForeignLines, WithholdForeign
from counterfoil.telemetry.lines import THE_LOG
from tests.support.planted import Planted


class Lines:
    """What was written to standard error so far."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self.captured, self.text = captured, ""

    def getvalue(self) -> str:
        self.text += self.captured.readouterr().err
        return self.text


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """What is written to standard error; the process's logging is put back afterwards."""
    kept = (logging.getLogRecordFactory(), logging.root.handlers[:], logging.root.level, vars(THE_LOG).copy())
    hooks = (sys.excepthook, sys.unraisablehook, threading.excepthook)
    telemetry.configure(True)
    yield Lines(capsys)
    logging.setLogRecordFactory(kept[0])
    logging.root.handlers[:], logging.root.level = kept[1], kept[2]
    vars(THE_LOG).update(kept[3])
    sys.excepthook, sys.unraisablehook, threading.excepthook = hooks
    logging.captureWarnings(False)


def read(out: Lines) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_has_its_time_level_event_and_fields(lines: Lines) -> None:
    one = UUID(int=7)
    telemetry.log(LogEvent.RESULT_SAVED, operation_id=one, type="sync", attempt=2, reason=Reason.RECEIPT, state=State.CONFIRMED)
    (line,) = read(lines)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "event": "result_saved",
        "operation_id": str(one),
        "type": "sync",
        "attempt": 2,
        "reason": "receipt",
        "state": "confirmed",
    }


def test_an_alarm_is_a_warning_and_is_never_dropped(lines: Lines) -> None:
    telemetry.configure(True, drop=frozenset({LogEvent.TOPIC_MISSING, LogEvent.RECEIVED}))
    telemetry.alarm(LogEvent.TOPIC_MISSING, topic="books.sync.commands")
    telemetry.log(LogEvent.RECEIVED, type="sync")
    assert [(line["level"], line["event"]) for line in read(lines)] == [("warning", "topic_missing")]


def test_a_field_that_is_not_listed_is_a_mistake_of_the_program(lines: Lines) -> None:
    with pytest.raises(TypeError, match="payload"):
        telemetry.log(LogEvent.RECEIVED, payload="x")  # type: ignore[call-arg]
    assert not read(lines)


@pytest.mark.parametrize("text", ["two words", "line\nbreak", "x" * 300, "{'card': 4111}", "café"])
def test_a_text_that_is_no_name_is_withheld(lines: Lines, text: str) -> None:
    """S18."""
    telemetry.log(LogEvent.QUARANTINED, reason=text)
    assert read(lines)[0]["reason"] == "withheld"


def test_other_libraries_records_lose_text_arguments_and_traceback(lines: Lines, planted: Planted) -> None:
    """S18: Faust and mode log exception texts under the service's own logger name."""
    try:
        raise ValueError(planted.error)
    except ValueError:
        logging.getLogger("mode.services").exception("Crashed reason=%r", planted.error, stack_info=True)
    (line,) = read(lines)
    assert (line["event"], line["logger"], line["error_class"]) == ("foreign", "mode.services", "ValueError")
    assert planted.error not in lines.getvalue()


@pytest.mark.parametrize(("level", "said"), [(logging.WARNING, []), (logging.DEBUG, ["debug"])])
def test_each_try_to_connect_is_told_at_debug_only(lines: Lines, planted: Planted, level: int, said: list[str]) -> None:
    telemetry.configure(True, level=level)
    for _ in range(3):
        telemetry.library_logger("librdkafka").log(logging.ERROR, "%s [%s] %s", "FAIL", "rdkafka#producer-1", planted.error)
    assert [line["level"] for line in read(lines)] == said
    assert planted.error not in lines.getvalue()


def test_the_same_line_of_a_library_is_written_once_in_a_while_with_the_count_of_those_left_out(
    lines: Lines, planted: Planted
) -> None:
    """S18: of a line of librdkafka its own code is told, never its text."""
    now = [0.0]
    handler = ForeignLines(clock=lambda: now[0])
    handler.addFilter(WithholdForeign())
    logging.root.handlers[:] = [handler]
    library = telemetry.library_logger("librdkafka")
    for second in range(40):
        now[0] = float(second)
        library.error("%s [%s] %s", "ERROR", "rdkafka#producer-1", planted.error)
        library.error("%s [%s] %s", planted.error, "rdkafka#producer-1", planted.error)
        logging.getLogger("aiohttp").warning(planted.payload)
    handler.close()
    told = [(line["logger"], line.get("error_code"), line.get("left_out")) for line in read(lines)]
    mine = [one for one in told if one[0] == "counterfoil.librdkafka"]
    assert mine[:4] == [(mine[0][0], code, left_out) for left_out in (None, 29) for code in ("ERROR", None)]
    assert [left_out for *_, left_out in told] == [None] * 3 + [29] * 3 + [9] * 3
    assert planted.error not in lines.getvalue()
    assert planted.payload not in lines.getvalue()


def test_the_users_own_lines_are_never_left_out(lines: Lines) -> None:
    telemetry.configure(True, own_loggers=("acme",))
    for _ in range(3):
        logging.getLogger("acme").warning("busy")
    assert [line["message"] for line in read(lines)] == ["busy"] * 3


def test_a_handler_that_a_library_installs_later_has_nothing_to_print(lines: Lines, planted: Planted) -> None:
    """S18: Faust's worker clears the root's handlers and installs its own."""
    theirs = io.StringIO()
    handler = logging.StreamHandler(theirs)
    logging.root.handlers[:] = [handler]
    try:
        raise ValueError(planted.error)
    except ValueError:
        logging.getLogger("faust").exception("%s", planted.payload, extra={"data": planted.payload})
    assert "ValueError" in theirs.getvalue()
    assert planted.error not in theirs.getvalue()
    assert planted.payload not in theirs.getvalue()


def test_a_record_that_was_made_elsewhere_is_reduced_too(lines: Lines, planted: Planted) -> None:
    """S18."""
    record = logging.LogRecord("queue", logging.ERROR, "x.py", 1, "%s", (planted.payload,), None)
    logging.root.handle(record)
    assert planted.payload not in lines.getvalue()
    assert read(lines)[0]["event"] == "foreign"


def test_the_users_own_loggers_are_printed_as_they_are(lines: Lines) -> None:
    telemetry.configure(True, own_loggers=("acme",))
    logging.getLogger("acme.push").warning("busy for %d s", 3)
    logging.getLogger("acmeother").warning("busy for %d s", 3)
    assert [line.get("message") for line in read(lines)] == ["busy for 3 s", None]


def test_warnings_are_reduced(lines: Lines, planted: Planted) -> None:
    """S18."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn(planted.payload, stacklevel=1)
        logging.captureWarnings(False)
    assert planted.payload not in lines.getvalue()
    assert read(lines)[0]["logger"] == "py.warnings"


def test_an_exception_that_nobody_caught_is_told_by_class_and_place(lines: Lines, planted: Planted) -> None:
    """S18."""
    try:
        raise RuntimeError(planted.error)
    except RuntimeError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    thread = threading.Thread(target=int, args=(planted.error,))
    thread.start()
    thread.join()
    assert [(line["event"], line["error_class"]) for line in read(lines)] == [
        ("uncaught", "RuntimeError"),
        ("uncaught", "ValueError"),
    ]
    assert planted.error not in lines.getvalue()


def test_the_words_for_terminals_say_the_same(lines: Lines) -> None:
    telemetry.configure(False)
    telemetry.log(LogEvent.STARTED, worker="w1")
    assert lines.getvalue().endswith("info started worker=w1\n")


def test_a_closed_standard_error_stops_nobody(lines: Lines) -> None:
    """A reader that is gone must not stop a worker; what is written once there is a reader again is read."""
    closed = io.StringIO()
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        closed.write("so would every line raise")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", closed)
        telemetry.log(LogEvent.STARTED)
        telemetry.alarm(LogEvent.DATABASE_LOST)
        telemetry.log_each(LogEvent.RECEIVED, [{"type": "sync"}])
    telemetry.log(LogEvent.STOPPED)
    assert [line["event"] for line in read(lines)] == ["stopped"]


def test_counters_have_fixed_labels_and_no_texts(monkeypatch: pytest.MonkeyPatch, planted: Planted) -> None:
    """D26, D95."""
    monkeypatch.setattr(counters, "_counts", Counter())
    telemetry.count("records_kept_raw", operation_type="sync", reason=Reason.UNDECODABLE_VALUE)
    telemetry.count("records_kept_raw", 2, operation_type="sync", reason=Reason.UNDECODABLE_VALUE)
    telemetry.count("records_kept_raw", operation_type="sync", reason=f"ValueError: {planted.error}")
    assert telemetry.counts() == {
        ("records_kept_raw", "sync", "undecodable_value", ""): 3,
        ("records_kept_raw", "sync", "withheld", ""): 1,
    }


def test_counters_are_logged_at_the_end(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "_counts", Counter())
    telemetry.count("rows_published", 5, operation_type="sync")
    telemetry.log_counts()
    (line,) = read(lines)
    assert {name: line[name] for name in ("event", "counter", "count", "type")} == {
        "event": "counted",
        "counter": "rows_published",
        "count": 5,
        "type": "sync",
    }


class Span:
    """The shape of OpenTelemetry's span context."""

    def __init__(self, valid: bool) -> None:
        self.is_valid, self.trace_id, self.span_id, self.trace_flags = valid, 0xABC, 0xDEF, 1

    def get_span_context(self) -> "Span":
        return self


def test_the_callers_trace_context_is_read_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_span_of", [lambda: Span(True)])
    assert telemetry.current_traceparent() == f"00-{'abc':0>32}-{'def':0>16}-01"


@pytest.mark.parametrize("span_of", [None, lambda: Span(False)])
def test_without_an_open_span_there_is_no_trace_context(monkeypatch: pytest.MonkeyPatch, span_of: Any) -> None:
    monkeypatch.setattr(tracing, "_span_of", [span_of])
    assert telemetry.current_traceparent() is None
