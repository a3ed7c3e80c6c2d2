"""Tracks: extended along the log, kept while used, bounded."""

from __future__ import annotations

import pytest

from noetl.engine.plan.plan import Plan
from noetl.engine.queries.track import build
from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.cache.tracks import Tracks
from noetl.server.control_plane import LocalControlPlane, Store
from tests.unit.server.system import RealClock, begin, chain, ended, register, workers

pytestmark = pytest.mark.asyncio


class Counting:
    """A log that counts the events it returned; it ends at `until`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.until = 1 << 30
        self.events = 0

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        found = [one for one in await self._store.read(execution_id, after, limit) if one.seq <= self.until]
        self.events += len(found)
        return found


async def ran(store: Store, count: int = 1) -> list[str]:
    async with LocalControlPlane(store, RealClock()) as control, workers(control):
        path = await register(store, chain(12))
        ids = [await begin(control, path) for _ in range(count)]
        for execution_id in ids:
            await ended(control, store, execution_id)
    return ids


async def test_a_cached_track_reads_each_event_once(store: Store) -> None:
    (execution_id,), log = await ran(store), Counting(store)
    tracks, plans = Tracks(log, PlanCache(store, {}).get), PlanCache(store, {})
    events = await store.read(execution_id)
    for until in (3, 3, 20, len(events)):
        log.until = until
        assert (await tracks.get(execution_id)).track.seq == until
        assert log.events == until
    live = await tracks.get(execution_id)
    plan = await plans.get(str(events[0].payload["playbook"]))
    whole = build(plan, execution_id, events)
    assert live.track.marks_after(0) == whole.marks_after(0)
    assert live.track.spans == whole.spans


async def test_the_least_recently_used_track_goes_unless_a_stream_holds_it(store: Store) -> None:
    ids, log = await ran(store, 3), Counting(store)
    tracks = Tracks(log, PlanCache(store, {}).get, most=2)
    held = await tracks.get(ids[0])
    for execution_id in ids[1:]:
        await tracks.get(execution_id)
    read = log.events
    assert await tracks.get(ids[0]) is held
    assert log.events == read
    await tracks.get(ids[1])  # the one that went when the first came back
    assert log.events == read + len(await store.read(ids[1]))


async def test_tracks_are_bounded_by_their_events(store: Store) -> None:
    ids, log = await ran(store, 2), Counting(store)
    tracks = Tracks(log, PlanCache(store, {}).get, most_events=10)
    for execution_id in (*ids, *ids):
        await tracks.get(execution_id)
    assert log.events == 2 * sum([len(await store.read(one)) for one in ids])


async def test_a_track_without_its_playbook_has_no_joins(store: Store) -> None:
    async def gone(playbook: str) -> Plan:
        raise InvalidInput(f"no playbook {playbook}")

    (execution_id,) = await ran(store)
    live = await Tracks(store, gone).get(execution_id)
    assert live.track.plan is None
    assert live.track.series["x"].last
