"""Whose shards are whose: the arithmetic, without a ledger."""

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.core.shards import SHARDS
from counterfoil.streams.relay.shards import fair_share, surplus


@given(live=st.integers(1, 200))
def test_the_shares_of_all_live_relays_cover_every_shard_and_no_relay_owns_two_more_than_it_must(live: int) -> None:
    assert fair_share(live) * live >= SHARDS
    assert (fair_share(live) - 1) * live < SHARDS


def test_a_relay_that_counts_nobody_counts_itself() -> None:
    assert fair_share(0) == SHARDS


@given(held=st.sets(st.integers(0, SHARDS - 1)), share=st.integers(1, SHARDS))
def test_what_is_given_back_is_exactly_what_is_beyond_the_share(held: set[int], share: int) -> None:
    given_back = surplus(held, share)
    assert set(given_back) <= held
    assert len(held) - len(given_back) == min(len(held), share)
