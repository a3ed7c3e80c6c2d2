"""Every table of triggers: kept, changed by one, listed, removed, audited."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from noetl.ports import AuditEntry
from noetl.ports.triggers import StoredTrigger, Triggers
from tests.conformance.conftest import Place

pytestmark = pytest.mark.asyncio
PUSH = StoredTrigger(
    "webhook", "push", "a/b", {"auth": "github", "payload": {"é": [1, None]}}, 3, "a/b", created_at=5, created_by="ann"
)


@pytest.fixture
def triggers(place: Place) -> Triggers:
    return place.triggers(place.open())


async def test_a_trigger_is_kept_as_it_was_added(triggers: Triggers) -> None:
    assert await triggers.add(PUSH)
    assert await triggers.trigger("webhook", "push") == replace(PUSH, revision=1)
    assert not await triggers.add(replace(PUSH, path="other"))
    assert await triggers.add(replace(PUSH, kind="other", version=None, paused=True))
    assert await triggers.trigger("other", "push") == replace(PUSH, kind="other", version=None, paused=True, revision=1)
    assert await triggers.trigger("webhook", "none") is None


async def test_triggers_are_listed_by_kind_id_path_and_owner(triggers: Triggers) -> None:
    for name, path, owner in (("c", "p", ""), ("A", "p", "p"), ("b", "q", "")):
        await triggers.add(StoredTrigger("webhook", name, path, owner=owner))
    await triggers.add(StoredTrigger("other", "d", "p"))
    assert [one.trigger_id for one in await triggers.triggers("webhook")] == ["A", "b", "c"]
    assert [one.trigger_id for one in await triggers.triggers("webhook", path="p")] == ["A", "c"]
    assert [one.trigger_id for one in await triggers.triggers("webhook", owner="p")] == ["A"]
    assert [one.trigger_id for one in await triggers.triggers("webhook", after="A", limit=1)] == ["b"]


async def test_one_of_many_changes_a_trigger(place: Place) -> None:
    tables = [place.triggers(place.open()) for _ in range(3)]
    await tables[0].add(PUSH)
    seen = await tables[0].trigger("webhook", "push")
    assert seen is not None
    won = await asyncio.gather(*(one.save(replace(seen, path=str(at))) for at, one in enumerate(tables)))
    assert sorted(won) == [False, False, True]
    found = await tables[0].trigger("webhook", "push")
    assert found == replace(seen, path=str(won.index(True)), revision=2)
    assert not await tables[0].save(replace(seen, trigger_id="none"))


async def test_changes_are_audited_and_refusals_are_not(place: Place) -> None:
    store = place.open()
    triggers, team = place.triggers(store), place.team(store)
    act = AuditEntry(1, "ann", "webhook.create", "push", {})
    await triggers.add(PUSH, act)
    await triggers.add(PUSH, act)
    assert await triggers.remove("webhook", "push", replace(act, action="webhook.delete"))
    assert not await triggers.remove("webhook", "push", act)
    assert [one.action for one in await team.audited()] == ["webhook.delete", "webhook.create"]


async def test_one_of_many_moves_a_position_on(place: Place) -> None:
    tables = [place.triggers(place.open()) for _ in range(3)]
    assert await tables[0].position("ended") == ({}, 0)
    won = await asyncio.gather(*(one.advance("ended", {"é": at}, 0) for at, one in enumerate(tables)))
    assert sorted(won) == [False, False, True]
    assert await tables[1].position("ended") == ({"é": won.index(True)}, 1)
    assert not await tables[2].advance("ended", {}, 0)
    assert await tables[2].advance("ended", {"é": 7, "b": 2**40}, 1)
    assert await tables[0].position("ended") == ({"é": 7, "b": 2**40}, 2)
    assert await tables[0].position("other") == ({}, 0)
