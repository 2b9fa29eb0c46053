"""Canonical form 1: golden spellings, and that two different values never share one (D56)."""

from typing import Any
from uuid import UUID

import pytest

from counterfoil.core import canonical


@pytest.mark.parametrize(
    ("spelled", "wanted"),
    [
        (canonical.of_text("abc"), b"s3:abc"),
        (canonical.of_text(""), b"s0:"),
        (canonical.of_text("e\u0301"), b"s2:\xc3\xa9"),
        (canonical.of_text("\u00e9"), b"s2:\xc3\xa9"),
        (canonical.of_integer(-12), b"i3:-12"),
        (canonical.of_decimal(1250), b"d4:1250"),
        (canonical.of_instant(0), b"t1:0"),
        (canonical.of_date(19_000), b"y5:19000"),
        (canonical.of_double(-0.0), b"f8:" + bytes(8)),
        (canonical.of_double(1.5), b"f8:?\xf8" + bytes(6)),
        (canonical.of_bytes(b"\x00"), b"x1:\x00"),
        (canonical.of_symbol("open"), b"e4:open"),
        (canonical.of_uuid(UUID(int=1)), b"u16:" + bytes(15) + b"\x01"),
        (canonical.NULL, b"n0:"),
    ],
)
def test_form_1_never_changes(spelled: bytes, wanted: bytes) -> None:
    """D56: golden values; a change here is a new form, not an edit."""
    assert spelled == wanted


def test_values_of_different_kinds_never_share_a_spelling() -> None:
    """D56: 1, "1", 1.0, true, null and absent are six different things."""
    spelled: list[Any] = [
        canonical.of_integer(1),
        canonical.of_text("1"),
        canonical.of_double(1.0),
        canonical.of_decimal(1),
        canonical.of_instant(1),
        canonical.of_date(1),
        canonical.of_symbol("1"),
        canonical.of_bytes(b"1"),
        canonical.TRUE,
        canonical.NULL,
        b"",
    ]
    assert len(set(spelled)) == len(spelled)


@pytest.mark.parametrize("text", ["a\x00b", "\ud83d", "\x00"])
def test_text_that_no_part_carries_is_told_apart(text: str) -> None:
    """D55: U+0000 and lone surrogates."""
    assert not canonical.is_storable(text)
    assert canonical.is_storable("é 😀")
