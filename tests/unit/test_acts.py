"""The list of acts and the chain that they are in."""

from __future__ import annotations

import pytest

from counterfoil.core.acts import Action, act_content, act_head
from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.core.texts import LONGEST_WHY, check_why


def test_each_act_is_told_in_a_sentence_of_its_own() -> None:
    sentences = [one.sentence for one in Action]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence and not sentence.endswith(".") for sentence in sentences)


def test_a_head_depends_on_the_act_before_on_its_place_and_on_every_word() -> None:
    """S15."""
    content = act_content(b"secret", b"said")
    head = act_head(b"before", 7, content)
    others = {
        act_head(b"other", 7, content),
        act_head(b"before", 8, content),
        act_head(b"before", 7, act_content(b"secret", b"sa")),
    }
    assert head not in others
    assert act_content(b"another", b"said") != content


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("", Reason.REASON_MISSING),
        (" \u00a0", Reason.REASON_MISSING),
        ("x" * (LONGEST_WHY + 1), Reason.TEXT_TOO_LONG),
        ("a\x1b[2J", Reason.FORBIDDEN_TEXT),
        ("a\0", Reason.FORBIDDEN_TEXT),
        (None, Reason.WRONG_TYPE),
    ],
)
def test_an_act_needs_a_reason_that_can_be_kept_and_shown(why: str, reason: Reason) -> None:
    with pytest.raises(Refused) as refused:
        check_why("an operation", why)
    assert refused.value.reason is reason
