"""The older form of the worker protocol: lease, heartbeat and events.

A worker names its work by the id in the lease; the server knows the lease. The items of a range of a loop are reported one
by one, with their index, or all at once. Rows of a cursor are only claimed by the current protocol. Tested in tests/server/api/test_seed_paths.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import msgspec

from noetl.blobs.manifests import items as manifest_items
from noetl.engine.tasks.run_info import Scopes
from noetl.model.messages import Ending, ItemEnd
from noetl.model.messages import Report as Done
from noetl.model.refs import expanded
from noetl.model.work import Chunk, Lease, WorkItem
from noetl.server.api.workers.worker import connection_of
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.worker_socket import admitted, worker_name
from noetl.server.problems import Refusal
from noetl.server.workers.registry import WorkerConnection
from noetl.wire.older import EventSent, EventTaken, Job, JobItem, Leased, SeedHeartbeat, SeedLease
from noetl.wire.session import Claim, Hello, Leases, Report, Stop

_STARTED, _DONE, _FAILED = "action_started", "action_completed", "action_error"
_TAKEN = (_STARTED, _DONE, _FAILED)
_EVENT = {
    "execution_id": "7123",
    "event_type": _DONE,
    "node_id": "7123:fetch#1",
    "status": "COMPLETED",
    "result": {"n": 1},
}
noun = Noun("queue", "The older form of the worker protocol.")


@noun.route("POST", "/queue/lease", "worker", example={"worker_id": "host:17", "lease_seconds": 60}, problems=(403,))
async def lease(call: Call, body: SeedLease) -> Leased:
    """Lease available work without waiting."""
    registry = call.services.registry
    hello = Hello(body.worker_id, (body.pool,), acks=False)
    name = admitted(call.actor, hello)
    connection = registry.known(name)
    if connection is None or connection.hello.pools != hello.pools:
        connection, _ = await registry.hello(name, hello)
    await registry.heartbeat(connection, ())
    claim = Claim(uuid4().hex, body.limit)
    leases = await registry.claim(connection, claim)
    await registry.keep(connection, [(one.work.work_id, one.epoch) for one in leases], body.lease_seconds)
    return Leased(id=claim.id, leases=leases, job=await _job(call, leases[0]) if leases else None)


async def _job(call: Call, lease: Lease) -> Job:
    work = lease.work
    tree = msgspec.json.decode(await call.services.control.playbook(work.playbook))
    step: dict[str, Any] = next((one for one in tree.get("workflow", ()) if one.get("step") == work.step), {})
    items = (
        None if work.chunk is None else await _items(call, work, work.chunk, step.get("loop", {}).get("iterator", ""))
    )
    return Job(
        id=work.work_id,
        execution_id=work.execution_id,
        node_id=work.work_id,
        node_name=work.step,
        action=msgspec.json.encode(step).decode(),
        context={
            **work.scopes,
            "steps": {name: expanded(one) for name, one in work.scopes["steps"].items()},
            **(items[0].context if items else {}),
        },
        status="leased",
        priority=work.priority,
        attempts=lease.attempt,
        epoch=lease.epoch,
        lease_until=lease.until,
        worker_id=lease.worker,
        loop_items=items,
    )


async def _items(call: Call, work: WorkItem, chunk: Chunk, iterator: str) -> list[JobItem]:
    """Return the items of a range that have not ended, each with its names."""
    values: Sequence[Any] = chunk.items
    if chunk.source is not None:
        values = await manifest_items(
            call.services.blobs, chunk.source, chunk.start, chunk.count, call.services.clock.now()
        )
    scopes, found = Scopes.of(work.scopes), []
    for index, value in enumerate(values, chunk.start):
        if index not in chunk.ended:
            loop = {"loop_id": f"{work.execution_id}:{work.step}", "current_index": index, "current_item": value}
            iteration = scopes.item(iterator, value, index, chunk.total).iter
            found.append(JobItem(index, value, {iterator: value, "iter": dict(iteration), "_loop": loop}))
    return found


@noun.route(
    "POST",
    "/api/queue/{work_id}/heartbeat",
    "worker",
    example={"worker_id": "host:17", "extend_seconds": 60},
    problems=(409,),
)
async def heartbeat(call: Call, work_id: str, body: SeedHeartbeat) -> Stop:
    """Renew one lease; the answer names the work if the lease is lost."""
    registry, connection = call.services.registry, connection_of(call, body.worker_id)
    known = registry.holder(work_id)
    epoch = body.epoch if body.epoch is not None else known[1] if known is not None and known[0] is connection else 0
    lost = await registry.heartbeat(connection, [(work_id, epoch)])
    await registry.keep(connection, [] if lost else [(work_id, epoch)], body.extend_seconds)
    return Stop(tuple(lost), "", connection.draining)


@noun.route("POST", "/events", "worker", example=_EVENT, problems=(404, 409, 422, 503))
async def events(call: Call, body: EventSent) -> EventTaken:
    """Report an event of leased work."""
    registry = call.services.registry
    if body.event_type is None:
        if body.report is None or body.execution_id is None:
            detail = "The body is neither an event nor a report."
            raise Refusal(422, "invalid-input", detail, where="$.event_type", fix="Send `event_type` or `report`.")
        frame = Report(body.id, str(body.execution_id), body.report, body.want, body.worker)
        return _taken(await registry.report_wait(connection_of(call, body.worker), frame))
    if body.node_id is None:
        detail = "The event does not name its work."
        raise Refusal(422, "invalid-input", detail, where="$.node_id", fix="Send the `id` of the lease.")
    connection, epoch = _holder(call, body, body.node_id)
    if body.event_type == _STARTED:
        lost = await registry.heartbeat(connection, [(body.node_id, epoch)])
        if lost:
            raise _not_held(body.node_id)
    execution_id, _, rest = body.node_id.partition(":")
    run_id, _, chunk_id = rest.partition(":")
    work = registry.work(connection, (body.node_id, epoch))
    ending, items = _ending(body), tuple[ItemEnd, ...]()
    if chunk_id and ending is not None:
        ending, items = _ends(body, ending, None if work is None else work.chunk)
    done = Done(_message_id(body, epoch), run_id, epoch, items=items, chunk=chunk_id or None, ending=ending)
    return _taken(await registry.report_wait(connection, Report(body.id or uuid4().hex, execution_id, done)))


def _ends(body: EventSent, ending: Ending, chunk: Chunk | None) -> tuple[Ending | None, tuple[ItemEnd, ...]]:
    """Return how a range ends as a whole, or how its items end. Raises Refusal."""
    if chunk is not None and chunk.claim:
        detail = "Rows of a cursor must be claimed in frames of the current protocol."
        raise Refusal(422, "invalid-input", detail, where="$.node_id", fix="See /docs.")
    index = _index(body)
    if index is not None:
        return None, (_item(index, ending, ending.result, chunk),)
    if ending.status == "error":
        return ending, ()  # of all items that have not ended
    left = [] if chunk is None else [at for at in range(chunk.start, chunk.start + chunk.size) if at not in chunk.ended]
    results = [ending.result] if len(left) == 1 else ending.result
    if not isinstance(results, list) or len(results) != len(left) or not left:
        raise Refusal(
            422,
            "invalid-input",
            f"The work is a range of {len(left) or 'several'} loop items, and `result` is no list of as many.",
            where="$.result",
            fix="Send `index` with the result of each item, or a list with the result of all.",
        )
    return None, tuple(_item(at, ending, result, chunk) for at, result in zip(left, results, strict=True))


def _item(index: int, ending: Ending, result: Any, chunk: Chunk | None) -> ItemEnd:
    known = chunk is not None and chunk.start <= index < chunk.start + len(chunk.keys)
    key = chunk.keys[index - chunk.start] if chunk is not None and known else None
    return ItemEnd(index, ending.status, result, ending.error, key=key)


def _index(body: EventSent) -> int | None:
    """Return the index of the loop item that an event is about."""
    if body.index is not None:
        return body.index
    for part in (body.context, body.meta, body.metadata):
        for place in (part.get("_loop"), part) if isinstance(part, dict) else ():
            for name in ("current_index", "index"):
                found = place.get(name) if isinstance(place, dict) else None
                if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
                    return found
    return None


def _taken(answer: Leases) -> EventTaken:
    return EventTaken(id=answer.id, status=answer.status, leases=list(answer.leases))


def _holder(call: Call, body: EventSent, node_id: str) -> tuple[WorkerConnection, int]:
    """Return the worker of an event and the epoch of its lease. Raises Refusal."""
    known = call.services.registry.holder(node_id)
    if body.worker_id is not None:
        connection = connection_of(call, body.worker_id)
        if body.epoch is not None:
            return connection, body.epoch
        if known is None or known[0] is not connection:
            raise _not_held(node_id)
        return known
    if known is None or known[0].name != worker_name(call.actor, known[0].hello.worker):
        raise _not_held(node_id)
    return known


def _not_held(node_id: str) -> Refusal:
    return Refusal(
        409,
        "not-held",
        f"This worker does not hold the work {node_id}.",
        where="$.node_id",
        fix="Lease work, then report on it.",
    )


def _message_id(body: EventSent, epoch: int) -> str:
    if body.event_id is not None:
        return f"event:{body.event_id}"
    index = _index(body)
    return f"{body.node_id}@{epoch}.{body.event_type}" + ("" if index is None else f".{index}")


def _ending(body: EventSent) -> Ending | None:
    """Return how the work ended; None for an event of its start."""
    if body.event_type == _STARTED:
        return None
    if body.event_type == _DONE:
        return Ending("ok", body.result)
    if body.event_type != _FAILED:
        raise Refusal(
            422,
            "invalid-input",
            f"Workers cannot send `{body.event_type}`: the server decides what follows.",
            where="$.event_type",
            fix=f"Send one of {', '.join(_TAKEN)}.",
        )
    given = body.error if isinstance(body.error, dict) else {"message": str(body.error or "the action failed")}
    return Ending("error", None, {"kind": "unknown", "code": "", "retryable": False, **given})
