"""One answer for a start page. Tested in tests/server/api/test_overview.py."""

from __future__ import annotations

from noetl.model.letters import PENDING
from noetl.ports import Selection
from noetl.ports.letters import LetterSelection
from noetl.server.api.executions.executions import row_of
from noetl.server.http.endpoint import Call, Noun
from noetl.server.workers.presence import pools_of
from noetl.wire.answers import ExecutionRow, PoolRow
from noetl.wire.letters import LetterGroup
from noetl.wire.screens.overview import Bucket, Counted, NeedsYou, Overview

_DAY_MS, _BUCKET_MS = 86_400_000, 1_800_000
_MOST = 10_000  # executions that are counted by status
_NEWEST = 20_000  # executions that the counts of a day look at
_SHOWN, _NEEDS = 10, 20
_RUNNING, _SAMPLE, _SLOW = 50, 100, 3  # looked at for slow ones; of their playbook; times the 95th percentile
_FEWEST = 5  # executions of a playbook before one of it can be slow
noun = Noun("overview", "Overview of a server.")


@noun.route("GET", "/api/overview", "viewer", of="path")
async def overview(call: Call) -> Overview:
    """Return counts, what needs a person, throughput, pools and the newest executions."""
    store, now = call.services.store, call.services.clock.now()
    since = now - now % _BUCKET_MS + _BUCKET_MS - _DAY_MS
    open_ones = await store.open_counts(_MOST, call.reach)
    recent = await store.recent_counts(since, _BUCKET_MS, _NEWEST, call.reach)
    day: dict[str, int] = {}
    buckets: list[dict[str, int]] = [{} for _ in range(_DAY_MS // _BUCKET_MS)]
    for (number, status), count in recent.counts.items():
        day[status] = day.get(status, 0) + count
        if 0 <= number < len(buckets):
            buckets[number][status] = count
    newest = await store.executions(Selection(limit=_SHOWN, within=call.reach))
    pools = await _pools(call)
    return Overview(
        now=Counted(counts=dict(open_ones), is_whole=max(open_ones.values()) < _MOST),
        day=Counted(counts=day, is_whole=recent.is_whole),
        bucket_ms=_BUCKET_MS,
        buckets=[Bucket(at=since + number * _BUCKET_MS, counts=one) for number, one in enumerate(buckets)],
        needs=[*await _signals(call), *await _letters(call), *_unserved(pools, now), *await _slow(call, now)],
        pools=pools,
        recent=[row_of(row) for row in newest],
    )


async def _signals(call: Call) -> list[NeedsYou]:
    selection = Selection(needs_signal=True, limit=_NEEDS, within=call.reach)
    rows = [row_of(row) for row in await call.services.store.executions(selection)]
    return [NeedsYou(cause="signal", since=row.started_at, execution=row) for row in rows]


async def _letters(call: Call) -> list[NeedsYou]:
    selection = LetterSelection(status=(PENDING,), limit=_NEEDS, within=call.reach)
    groups = [LetterGroup(**row) for row in await call.services.store.letter_groups(selection)]
    return [NeedsYou(cause="letters", since=group.first_seen, group=group) for group in groups[:_NEEDS]]


async def _pools(call: Call) -> list[PoolRow]:
    """Return the pools; a caller of some namespaces sees none, as they belong to all."""
    if call.reach is not None:
        return []
    team = call.services.team
    return [PoolRow(**row) for row in pools_of(await team.workers(), await team.depths())]


def _unserved(pools: list[PoolRow], now: int) -> list[NeedsYou]:
    missing = [pool for pool in pools if pool.queued and not pool.workers and not pool.pool.startswith("local:")]
    return [NeedsYou(cause="worker", since=pool.oldest or now, pool=pool) for pool in missing]


async def _slow(call: Call, now: int) -> list[NeedsYou]:
    """Return running executions that take much longer than usual for their playbook."""
    store = call.services.store
    rows = await store.executions(Selection(status=("running",), limit=_RUNNING, within=call.reach))
    usual = {path: await store.durations(path, _SAMPLE) for path in {str(row.get("path", "")) for row in rows}}
    found: list[NeedsYou] = []
    for row in map(row_of, rows):
        known = sorted(usual[row.path])
        most = known[len(known) * 95 // 100] if len(known) >= _FEWEST else None
        if most is not None and _is_slow(row, most, now):
            found.append(NeedsYou(cause="slow", since=row.started_at, execution=row, usual_ms=most))
    return found


def _is_slow(row: ExecutionRow, usual_ms: int, now: int) -> bool:
    return now - row.started_at > max(1_000, _SLOW * usual_ms)
