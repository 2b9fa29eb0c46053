"""Roads and topics: which a row goes to, and that their names are spelt in one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from counterfoil.core.roads import KIND_OF, KINDS, TO_WORKERS, around_type, arrival_topic, road_of, topic_of

ROOT = Path(__file__).resolve().parents[2]
#: A topic's name or its last word, or the kind of an outbox row that has a word of its own.
SPELT = re.compile(r"""(?:["'}]\.|["'])(?:commands|dead-letters|dead_letter)["']|["'}]\.(?:retry|state)["']""")


def test_each_kind_has_its_road_and_topic() -> None:
    assert KINDS == ("command", "retry", "state", "dead_letter")
    assert [road_of(kind, "send_mail") for kind in KINDS] == ["command.send_mail", "retry.send_mail", "state", "dead_letter"]
    assert [topic_of("shop", road_of(kind, "send_mail")) for kind in KINDS] == [
        "shop.send_mail.commands",
        "shop.send_mail.retry",
        "shop.state",
        "shop.dead-letters",
    ]


@pytest.mark.parametrize("kind", TO_WORKERS)
def test_a_topic_is_found_again_by_the_word_that_the_ledger_keeps(kind: str) -> None:
    topic = topic_of("shop", road_of(kind, "send_mail"))
    assert arrival_topic("shop", "send_mail", TO_WORKERS[kind]) == topic
    assert "send_mail".join(around_type("shop", kind)) == topic
    assert KIND_OF[TO_WORKERS[kind]] == kind


def test_no_other_module_spells_one_of_their_names() -> None:
    """Migrations are as they were written, the benchmark speaks to brokers plainly, and `ce_type` has its own ".state".

    A table of the ledger is called as the kind is: the modules that name the table are not topics' names.
    """
    of_the_table = {
        "counterfoil/cli/dead_letter_view.py",
        "counterfoil/core/roles.py",
        "counterfoil/ledger/statements/dead_letters.py",
        "counterfoil/ledger/tables_dead_letters.py",
    }
    spelt = {
        str(file.relative_to(ROOT))
        for room in ("counterfoil", "streams", "schemas", "sinks")
        for file in (ROOT / room).rglob("*.py")
        if SPELT.search(file.read_text()) and not {"migrations", "bench"} & set(file.parts)
    }
    assert spelt - of_the_table == {"counterfoil/core/roads.py", "schemas/envelope.py"}
