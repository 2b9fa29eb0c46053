"""Identities: the same business input gives the same id everywhere, and what has two spellings is refused (D55, D56)."""

import os
import subprocess
import sys
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import Reason, Refused
from counterfoil.core import identity
from counterfoil.core.records import Key

GOLDEN: list[tuple[str, str, Key, str]] = [
    ("main", "sync_customer", ("452", 7), "b94a189f-e039-8dcd-8fc5-df0d0479c59f"),
    ("main", "sync_customer", "452", "e961eaa0-e58d-8abf-bb90-1383308a23fe"),
    ("main", "pay", UUID(int=1), "fe2f2aab-6867-8d43-929e-2ddc6cbcea71"),
    ("eu-1", "pay", ("café", -1, UUID(int=2)), "66683769-7155-8779-a38b-608ec4c759fd"),
]

PARTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=20),
    st.integers(-(2**63), 2**63 - 1),
    st.uuids(),
)
KEYS = PARTS | st.lists(PARTS, min_size=1, max_size=4).map(tuple)


@pytest.mark.parametrize(("ledger", "type_name", "key", "wanted"), GOLDEN)
def test_an_operation_id_never_changes(ledger: str, type_name: str, key: Key, wanted: str) -> None:
    """D56: golden values."""
    assert str(identity.operation_id(ledger, type_name, key)) == wanted


@pytest.mark.parametrize("seed", ["0", "1"])
def test_another_process_with_another_hash_seed_makes_the_same_ids(seed: str) -> None:
    """D56: nothing derives from Python's own hash or from the locale."""
    program = (
        "from uuid import UUID\nfrom counterfoil.core.identity import operation_id\n"
        "print(operation_id('main', 'sync_customer', ('452', 7)), operation_id('main', 'pay', UUID(int=1)))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"}
    told = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    here = [identity.operation_id("main", "sync_customer", ("452", 7)), identity.operation_id("main", "pay", UUID(int=1))]
    assert told.stdout.split() == [str(each) for each in here]


def test_an_id_is_a_uuid_of_version_8() -> None:
    made = identity.operation_id("main", "pay", "1")
    assert (made.version, made.variant) == (8, "specified in RFC 4122")


def test_accents_as_one_or_two_code_points_are_one_identity() -> None:
    """D56: NFC."""
    assert identity.operation_id("m", "t", "caf\u00e9") == identity.operation_id("m", "t", "cafe\u0301")
    assert identity.entity_text("caf\u00e9") == identity.entity_text("cafe\u0301")


def test_what_differs_gets_another_id() -> None:
    """D56: ledger, type, kind of part, and where one part ends are all part of the identity."""
    keys: list[Key] = ["1", 1, ("1",), (1,), ("1", "2"), ("12",), "12", UUID(int=1), str(UUID(int=1)), ("1", 2), (1, "2")]
    ids = {identity.operation_id("m", "t", key) for key in keys}
    ids |= {identity.operation_id("m", "tt", "1"), identity.operation_id("mt", "t", "1"), identity.operation_id("m2", "t", "1")}
    assert len(ids) == len(keys) + 3


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (True, Reason.KEY_NOT_ALLOWED),
        (Decimal("1.0"), Reason.KEY_NOT_ALLOWED),
        (1.0, Reason.KEY_NOT_ALLOWED),
        (None, Reason.KEY_NOT_ALLOWED),
        (["a"], Reason.KEY_NOT_ALLOWED),
        (b"a", Reason.KEY_NOT_ALLOWED),
        (("a", ("b",)), Reason.KEY_NOT_ALLOWED),
        (("a", True), Reason.KEY_NOT_ALLOWED),
        (("a", None), Reason.KEY_NOT_ALLOWED),
        ("", Reason.KEY_EMPTY),
        ((), Reason.KEY_EMPTY),
        (("a", ""), Reason.KEY_EMPTY),
        ("a\x00", Reason.FORBIDDEN_TEXT),
        ("\ud83d", Reason.FORBIDDEN_TEXT),
        (2**63, Reason.NUMBER_OUT_OF_RANGE),
    ],
)
@pytest.mark.parametrize("name", ["canonical_key", "entity_text"])
def test_a_key_with_two_spellings_or_none_is_refused_without_its_value(name: str, key: Any, reason: Reason) -> None:
    """D55, D56: for users without a type checker."""
    with pytest.raises(Refused) as refused:
        getattr(identity, name)(key)
    assert refused.value.reason is reason


def test_members_of_an_enumeration_are_their_plain_values() -> None:
    colour, size = StrEnum("Colour", {"RED": "red"}), IntEnum("Size", {"BIG": 3})
    assert identity.canonical_key((colour.RED, size.BIG)) == identity.canonical_key(("red", 3))  # type: ignore[attr-defined]
    assert identity.entity_text((colour.RED, size.BIG)) == "(red,3)"  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", [True, "7", 7.0, None, Decimal(7), 2**63, -(2**63) - 1])
def test_a_version_that_is_no_integer_of_64_bits_is_refused(version: Any) -> None:
    with pytest.raises(Refused) as refused:
        identity.versioned("452", version)
    assert refused.value.reason is Reason.VERSION_NOT_INTEGER


def test_latest_wins_identity_is_entity_and_version() -> None:
    assert identity.versioned("452", 7) == ("452", 7)
    assert identity.versioned(("de", 452), 7) == ("de", 452, 7)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("452", "452"),
        (452, "452"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (("a", "b"), "(a,b)"),
        (("a,b",), "(a\\,b)"),
        (("a\\", "b"), "(a\\\\,b)"),
        ("(a,b)", "\\(a,b)"),
        ("\\(a", "\\\\(a"),
    ],
)
def test_an_entity_reads_as_it_is(key: Key, text: str) -> None:
    assert identity.entity_text(key) == text


def test_an_entity_of_more_than_512_bytes_is_refused() -> None:
    assert len(identity.entity_text("é" * 256).encode()) == 512
    with pytest.raises(Refused) as refused:
        identity.entity_text("é" * 257)
    assert refused.value.reason is Reason.KEY_TOO_LONG


def _spelling(key: Key) -> Any:
    return tuple(map(str, key)) if isinstance(key, tuple) else str(key)


@given(KEYS, KEYS)
def test_two_keys_share_an_entity_only_where_their_parts_read_alike(one: Key, other: Key) -> None:
    """An entity's text is unambiguous: it decides which operations may not run side by side (S7)."""
    from unicodedata import normalize

    def normal(key: Key) -> Any:
        spelled = _spelling(key)
        return tuple(normalize("NFC", each) for each in spelled) if isinstance(spelled, tuple) else normalize("NFC", spelled)

    assert (identity.entity_text(one) == identity.entity_text(other)) == (normal(one) == normal(other))


def test_names_that_derive_from_an_id() -> None:
    made = UUID("01234567-89ab-8def-8123-456789abcdef")
    assert identity.idempotency_key(made, 2, 1) == "cf1-0123456789ab8def8123456789abcdef-r2-g1"
    assert identity.result_key(made) == "01234567-89ab-8def-8123-456789abcdef"


def test_a_digest_carries_its_form_and_needs_the_secret() -> None:
    """S15: golden value; another secret, another digest."""
    made = identity.keyed_digest(b"secret-of-a-test-only-0123456789", b"s3:abc")
    assert made.hex() == "012e0c18fa83e472f85f01b9d3af35d17a2e8e8a7765097bdcdd7756381f6db0b9"
    assert made[0] == 1
    assert made != identity.keyed_digest(b"another", b"s3:abc")
