"""Presence of workers, including those of this process.

Workers that were not seen for a day are removed. Grants no work. Tested in tests/server/workers/test_presence.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from noetl.model.errors import NoetlError, log_level
from noetl.model.work import kept_slots
from noetl.ports import Clock, Runtime, WorkerInfo

_log = logging.getLogger(__name__)
_EVERY_S = 5.0
_HOUR_S = 3600.0
_KEPT_MS = 86_400_000  # how long a worker that is not seen any more stays on the list
_SILENT_MS = 60_000  # a worker without heartbeat for this long does not count


class LocalWorker(Protocol):
    """Worker in the process of a server."""

    @property
    def busy(self) -> int:
        """Number of running work items."""

    def drain(self) -> None:
        """Take no more work."""


@asynccontextmanager
async def attending(runtime: Runtime, clock: Clock, info: WorkerInfo, worker: LocalWorker) -> AsyncIterator[None]:
    """Keep a worker of this process registered while it works; drain it on request."""
    await runtime.enlist(info)
    signs = asyncio.create_task(_signs(runtime, clock, info.worker_id, worker), name="noetl-attendance")
    try:
        yield
    finally:
        signs.cancel()
        await asyncio.gather(signs, return_exceptions=True)
        with suppress(NoetlError):  # its heartbeats stop, which has the same effect
            await runtime.leave(info.worker_id, info.registered_at)


async def _signs(runtime: Runtime, clock: Clock, name: str, worker: LocalWorker) -> None:
    while True:
        await clock.sleep(_EVERY_S)
        try:
            if await runtime.seen(name, clock.now(), worker.busy) == "draining":
                worker.drain()
        except NoetlError as error:
            _log.log(log_level(error), "a sign of life is not written down: %s", error)


async def strike_off(runtime: Runtime, clock: Clock) -> None:
    """Remove workers that were not seen for long, hourly until cancelled."""
    while True:
        try:
            await runtime.strike_off(clock.now() - _KEPT_MS)
        except NoetlError as error:
            _log.log(log_level(error), "workers that are gone stay on the list: %s", error)
        await clock.sleep(_HOUR_S)


def by_playbook(flows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Merge the flows of the executions of a playbook that have begun."""
    rows: dict[tuple[str, int, str], dict[str, Any]] = {}
    for flow in flows:
        name, _, _ = str(flow["flow"]).rpartition("#")
        key = (flow["pool"], flow["priority"], name or str(flow["flow"]))
        known = rows.get(key)
        if known is None:
            rows[key] = {**flow, "flow": key[2]}
        else:
            known["queued"] += flow["queued"]
            known["oldest"] = min(known["oldest"], flow["oldest"])
    return list(rows.values())


def pools_of(workers: Iterable[WorkerInfo], depths: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each pool with its ready workers, their capacity, and its queue."""
    rows: dict[str, dict[str, Any]] = {}
    tags: dict[str, list[set[str]]] = {}  # of each ready worker

    def row(pool: str) -> dict[str, Any]:
        counts = dict.fromkeys(("workers", "capacity", "kept", "queued", "leased", "dead"), 0)
        return rows.setdefault(pool, {"pool": pool, **counts, "oldest": None, "unmet": []})

    for worker in workers:
        if worker.status == "ready":
            for pool in worker.pool.split(","):
                found = row(pool)
                found["workers"] += 1
                found["capacity"] += worker.capacity
                found["kept"] += kept_slots(worker.capacity)
                tags.setdefault(pool, []).append(set(worker.tags))
    for depth in depths:
        found = row(str(depth["pool"]))
        for name in ("queued", "leased", "dead"):
            found[name] += int(depth[name])
        times = [at for at in (found["oldest"], depth.get("oldest")) if at is not None]
        found["oldest"] = min(times, default=None)
        needed = set(depth["requires"])
        if needed and depth["queued"] and not any(needed <= one for one in tags.get(found["pool"], ())):
            waits = {"queued": int(depth["queued"]), "oldest": depth.get("oldest")}
            found["unmet"].append({"tags": sorted(needed), **waits})
    return [rows[name] for name in sorted(rows)]


def all_limits(
    executions: Iterable[Mapping[str, Any]], work: Iterable[Mapping[str, Any]], most: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return limits with what runs and waits: those of executions, then those of work.

    `most` are the server's limits of work, which are listed also if nothing counts for them.
    """
    rows: list[dict[str, Any]] = [{**row, "of": "executions"} for row in executions]
    counted = {str(row["limit"]): row for row in work}
    for name in sorted({*counted, *most}):
        row = counted.get(name, {"leased": 0, "queued": 0})
        about = {"of": "work", "limit": most.get(name)}
        rows.append({"group": name, "running": row["leased"], "waiting": row["queued"], **about})
    return rows


def is_ready(worker: WorkerInfo, now: int) -> bool:
    """Return whether a worker takes work now."""
    return worker.status == "ready" and now - worker.seen_at < _SILENT_MS


def groups(workers: Iterable[WorkerInfo], now: int) -> list[Mapping[str, Any]]:
    """Group workers by pool and tags, with their number and when last seen."""
    found: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = {}
    for worker in workers:
        takes = is_ready(worker, now)
        for pool in worker.pool.split(","):
            tags = tuple(sorted(worker.tags))
            group = found.setdefault((pool, tags), {"pool": pool, "tags": tags, "workers": 0, "idle_since": 0})
            group["workers"] += takes
            group["idle_since"] = max(group["idle_since"], worker.seen_at)
    return list(found.values())
