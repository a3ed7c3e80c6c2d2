"""Every store's access tokens: one holder fetches, all read what it stored."""

from __future__ import annotations

import asyncio

import pytest

from noetl.ports.keychain import DAY_MS, SealedToken
from noetl.ports.team import DataKey
from tests.conformance.conftest import Place, Team

pytestmark = pytest.mark.asyncio


async def test_one_of_many_may_fetch_and_all_see_what_it_stored(place: Place) -> None:
    teams = [place.team(place.open()) for _ in range(4)]
    assert await teams[0].access_token("k") is None
    claims = [team.claim_access_token("k", f"w{at}", 0, 100, 200) for at, team in enumerate(teams * 5)]
    granted = await asyncio.gather(*claims)
    assert sum(granted) == 1
    holder = f"w{granted.index(True)}"
    assert await teams[1].access_token("k") == SealedToken(b"", 200, 0)
    assert not await teams[2].keep_access_token("k", "other", b"x", 900, 110)
    assert await teams[2].keep_access_token("k", holder, b"\x00one", 900, 110)
    assert await teams[3].access_token("k") == SealedToken(b"\x00one", 900, 1)
    assert not await teams[3].claim_access_token("k", "w9", 0, 120, 220)  # of an older version
    assert await teams[3].claim_access_token("k", "w9", 1, 120, 220)


async def test_a_right_that_ended_or_was_given_back_goes_to_another(team: Team) -> None:
    assert await team.claim_access_token("k", "w1", 0, 100, 200)
    assert await team.claim_access_token("k", "w1", 0, 110, 210)  # it asks again
    assert not await team.claim_access_token("k", "w2", 0, 209, 300)
    assert await team.claim_access_token("k", "w2", 0, 210, 310)
    assert not await team.keep_access_token("k", "w1", b"late", 900, 220)
    assert await team.keep_access_token("k", "w2", None, 0, 220)
    assert await team.claim_access_token("k", "w3", 0, 221, 321)
    assert await team.keep_access_token("k", "w3", b"x", 900, 230)
    assert not await team.keep_access_token("k", "w3", b"twice", 900, 231)


async def test_old_tokens_are_removed(team: Team) -> None:
    for key, at in (("old", 0), ("new", DAY_MS)):
        assert await team.claim_access_token(key, "w", 0, at, at + 1)
        assert await team.keep_access_token(key, "w", b"x", at + 10, at)
    assert await team.claim_access_token("k", "w", 0, DAY_MS + 20, DAY_MS + 30)
    assert await team.keep_access_token("k", "w", b"x", DAY_MS + 90, DAY_MS + 20)
    assert [await team.access_token(key) is not None for key in ("old", "new", "k")] == [False, True, True]


async def test_data_keys_are_wrapped_again_only_where_nothing_else_did_it(place: Place) -> None:
    one, two = place.team(place.open()), place.team(place.open())
    first, second = DataKey("0a", b"\x00old", 5), DataKey("0b", b"two", 6)
    await one.add_data_key(first)
    await two.add_data_key(second)
    assert await one.data_keys() == [second, first]
    assert await one.rewrap_data_keys({"0a": (b"\x00old", b"new"), "0b": (b"stale", b"lost")}) == 1
    assert await two.data_keys() == [second, DataKey("0a", b"new", 5)]
    assert await two.rewrap_data_keys({}) == 0
