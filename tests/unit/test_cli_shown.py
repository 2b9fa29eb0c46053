"""Texts of callers and sinks on a terminal: nothing in them is obeyed, in words or in JSON."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from counterfoil.cli.answer import as_json
from counterfoil.cli.operation_log import Entry
from counterfoil.cli.operation_view import as_data, as_words
from counterfoil.cli.shown import shown, shown_json
from tests.unit.test_cli import NOON, view, whole

EVIL = "a\x1b[2J\x9b31m\u202eb\u2066\U000e0001\x7f\nc"


def test_what_a_terminal_would_obey_is_printed_as_its_escape() -> None:
    assert shown(EVIL) == r"a\x1b[2J\x9b31m\u202eb\u2066\U000e0001\x7f\x0ac"
    assert shown("\udc80") == r"\udc80"


@pytest.mark.parametrize("text", ["", "crm-1", "Zoë", "注文", "a → b", "e\u0301"])
def test_other_texts_are_shown_as_they_are(text: str) -> None:
    assert shown(text) == text


def test_json_is_escaped_and_says_the_same() -> None:
    told = as_json({"remote_id": EVIL, "lone": "\udc80", "plain": "Zoë"})
    assert told == shown_json(told)
    assert all(letter.isprintable() for line in told.splitlines() for letter in line)
    assert json.loads(told) == {"remote_id": EVIL, "lone": r"\udc80", "plain": "Zoë"}


def test_show_prints_no_control_character_from_any_field() -> None:
    one = whole(correlation_id=EVIL, remote_id=EVIL, remote_version=EVIL, result_key=EVIL)
    seen = view(one)
    seen.log.append(Entry(NOON, "cancel_asked", 1, "running", EVIL, None, {"why": EVIL, "actor": EVIL}))
    out = io.StringIO()
    as_words(seen, utc=True, console=Console(file=out, width=500))
    assert out.getvalue().count(r"a\x1b[2J") == 7
    for told in (out.getvalue(), as_json(as_data(seen))):
        assert all(letter.isprintable() for line in told.split("\n") for letter in line)
