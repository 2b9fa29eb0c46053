"""HMAC by copied state is HMAC."""

import hmac

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.core.chain import event_content
from counterfoil.core.keyed import keyed


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_a_keyed_digest_is_the_standard_librarys_hmac(secret: bytes, content: bytes) -> None:
    """S15: digests that were written before stay valid, whatever the length of the secret."""
    assert keyed(secret, content) == hmac.digest(secret, content, "sha256")


@given(st.sampled_from(["accepted", "result_saved"]), st.text(max_size=20), st.binary(max_size=50))
def test_an_events_content_covers_kind_reason_and_detail(kind: str, reason: str, detail: bytes) -> None:
    """S15: with a detail and without one, which is kept between calls."""
    secret = b"s" * 32
    expected = hmac.digest(secret, b"\x1f".join((kind.encode(), reason.encode(), detail)), "sha256")
    assert event_content(secret, kind, reason, detail) == expected
