"""Workers and pools. Tested in tests/server/api/test_worker.py."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from noetl.ports import Selection, WorkerInfo
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.worker_socket import worker_name
from noetl.server.problems import not_found
from noetl.server.workers.finished import LOOKED, finished_by
from noetl.server.workers.presence import all_limits, by_playbook, pools_of
from noetl.wire.answers import (
    FinishedRun,
    FinishedRuns,
    FlowRow,
    HeldWork,
    LimitRow,
    PoolRow,
    PoolRows,
    QueueState,
    WorkerDetails,
    WorkerRow,
    WorkerRows,
    WorkerStatus,
)
from noetl.wire.requests import WorkerRegistered, WorkerSeen

_SHOWN: Final = 20  # step-runs that a worker ended
_LOOKED_UP: Final = 200  # of which the caller may not see every execution
noun = Noun("workers", "Workers and pools.")


@noun.route("GET", "/api/workers", "viewer")
async def listed(call: Call) -> WorkerRows:
    """List the known workers."""
    return WorkerRows(workers=[_row(one) for one in await call.services.team.workers()])


@noun.route("GET", "/api/workers/{worker_id}", "viewer", problems=(404,))
async def shown(call: Call, worker_id: str) -> WorkerDetails:
    """Show a worker and the work that it holds, at most 200 leases."""
    team = call.services.team
    found = next((one for one in await team.workers() if one.worker_id == worker_id), None)
    if found is None:
        raise not_found(f"No worker {worker_id}.", "GET /api/workers lists the workers.")
    holds = [_held(**row) for row in await team.held(worker_id)]
    return WorkerDetails(**msgspec.structs.asdict(_row(found)), holds=holds)


@noun.route("GET", "/api/workers/{worker_id}/finished", "viewer", problems=(404,))
async def finished(call: Call, worker_id: str) -> FinishedRuns:
    """List the last 20 step-runs that a worker ended, as the newest events tell."""
    services = call.services
    if all(one.worker_id != worker_id for one in await services.team.workers()):
        raise not_found(f"No worker {worker_id}.", "GET /api/workers lists the workers.")
    ended = (await finished_by(services.store, worker_id))[:_LOOKED_UP]
    ids = tuple(dict.fromkeys(one.execution_id for one in ended))
    rows = await services.store.executions(Selection(ids=ids, within=call.reach, limit=_LOOKED_UP)) if ids else []
    paths = {str(row["execution_id"]): str(row.get("path", "")) for row in rows}
    runs = [
        FinishedRun(path=paths[one.execution_id], **msgspec.structs.asdict(one))
        for one in ended
        if one.execution_id in paths
    ]
    return FinishedRuns(runs=runs[:_SHOWN], looked=LOOKED)


@noun.route(
    "POST",
    "/api/workers",
    "worker",
    status=201,
    act="worker.register",
    example={"worker_id": "host:17", "pool": "gpu", "tags": ["gpu"], "capacity": 4},
)
async def register(call: Call, body: WorkerRegistered) -> WorkerStatus:
    """Register a worker that has no session."""
    now, name = call.services.clock.now(), worker_name(call.actor, body.worker_id)
    info = WorkerInfo(
        name, body.pool, body.tags, body.capacity, 0, "ready", body.host, body.version, registered_at=now, seen_at=now
    )
    await call.services.team.enlist(info, call.act(name, is_now="ready", pool=body.pool))
    return WorkerStatus(worker_id=name, status="ready")


@noun.route("POST", "/api/workers/{worker_id}/heartbeat", "worker", problems=(404,))
async def heartbeat(call: Call, worker_id: str, body: WorkerSeen) -> WorkerStatus:
    """Record a heartbeat and return the worker's status, which may be `draining`."""
    name = worker_name(call.actor, worker_id)
    status = await call.services.team.seen(name, call.services.clock.now(), body.active)
    if status is None:
        raise not_found(f"No worker {name}.", "Register it with POST /api/workers.")
    return WorkerStatus(worker_id=name, status=status)


@noun.route("POST", "/api/workers/{worker_id}/drain", "operator", act="worker.drain", problems=(404,))
async def drain(call: Call, worker_id: str) -> WorkerStatus:
    """Drain a worker: it finishes its work and takes no more."""
    if not await call.services.team.set_status(worker_id, "draining", call.act(worker_id, is_now="draining")):
        raise not_found(f"No worker {worker_id}.", "GET /api/workers lists the workers.")
    call.services.registry.drain(worker_id)
    return WorkerStatus(worker_id=worker_id, status="draining")


@noun.route("DELETE", "/api/workers/{worker_id}", "admin", act="worker.remove")
async def remove(call: Call, worker_id: str) -> WorkerStatus:
    """Remove a worker from the list; its leases expire."""
    await call.services.team.discharge(worker_id, call.act(worker_id))
    return WorkerStatus(worker_id=worker_id, status="gone")


@noun.route("GET", "/api/pools", "viewer")
async def pools(call: Call) -> PoolRows:
    """List the pools with their workers and queues."""
    return PoolRows(pools=await _pools(call))


@noun.route("GET", "/api/queue", "viewer")
async def queue(call: Call) -> QueueState:
    """Show what waits: by pool, by flow and by limit."""
    return QueueState(
        pools=await _pools(call),
        flows=[FlowRow(**row) for row in by_playbook(await call.services.team.flows())],
        limits=[LimitRow(**row) for row in await _limits(call)],
    )


async def _limits(call: Call) -> list[dict[str, Any]]:
    team = call.services.team
    return all_limits(await team.limits(), await team.work_limits(), call.services.control.work_limits)


async def _pools(call: Call) -> list[PoolRow]:
    team = call.services.team
    return [PoolRow(**row) for row in pools_of(await team.workers(), await team.depths())]


def _held(work_id: str, attempt: int, until: int) -> HeldWork:
    execution_id, _, run = work_id.partition(":")
    return HeldWork(execution_id=execution_id, run=run.partition(":")[0], attempt=attempt, lease_until=until)


def _row(worker: WorkerInfo) -> WorkerRow:
    return WorkerRow(
        **{**{name: getattr(worker, name) for name in WorkerRow.__struct_fields__}, "tags": list(worker.tags)}
    )
