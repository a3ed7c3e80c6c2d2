"""Fork executions: start a new one with a copy of a part of the history.

`engine.fork` decides which history is copied. Tested in tests/acceptance/executions/test_run_fork.py and
tests/server/api/test_executions.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from msgspec.structs import replace

from noetl.engine.queries.execution_fork import fork, place, shared
from noetl.engine.routing.start import check_schema
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution
from noetl.model.errors import Conflict, LimitReached, UnknownExecution
from noetl.model.messages import AnyMessage, PatchCtx, Unpause
from noetl.ports import Audit, Catalog, EventLog
from noetl.server.cache.plan_cache import PlanCache

if TYPE_CHECKING:
    from noetl.server.control_plane import LocalControlPlane

_TRIES = 20


class Store(EventLog, Catalog, Protocol):
    """A log and a catalog."""


@dataclass(frozen=True, slots=True)
class Made:
    """A fork: its first state, and the number of the last event that it copied."""

    state: Execution
    seq: int


async def fork_from(
    store: Store,
    control: LocalControlPlane,
    source: str,
    execution_id: str,
    start: str,
    *,
    ctx: Mapping[str, Any],
    workload: Mapping[str, Any],
    at: int,
    playbook: str = "",
    pool: str = "",
    tags: Sequence[str] = (),
    act: Audit = None,
) -> Made:
    """Commit a fork and continue it."""
    events = await store.read(source)
    if not events:
        raise UnknownExecution(f"No execution {source} in this store. List executions with `noetl runs`.")
    pinned = playbook or str(events[0].payload.get("playbook", ""))
    seq = place(events, start)
    copied = shared(events, seq, execution_id, at=at, playbook=pinned, pool=pool, workload=workload, tags=tags)
    plan = await PlanCache(store, control.defaults).get(pinned)
    check_schema(plan, fold(execution_id, copied).workload)
    acts = () if act is None else (act,)
    made = fork(plan, copied, execution_id)
    receipt = await store.commit([replace(made, inbox=(), audit=acts)])
    if receipt.commits[0].status == "full":
        made = fork(plan, copied, execution_id, queued=receipt.commits[0].why)
        receipt = await store.commit([replace(made, inbox=(), audit=acts)])
    if receipt.commits[0].status not in ("applied", "duplicate"):
        raise Conflict(f"The id {execution_id} belongs to another execution. Fork again.")
    state = fold(execution_id, made.events)
    # The message also moves tokens that wait where the history was cut.
    message: AnyMessage = PatchCtx(uuid4().hex, ctx, "fork") if ctx else Unpause(uuid4().hex)
    await submit_with_retry(control, execution_id, message)
    return Made(state, seq)


async def submit_with_retry(
    control: LocalControlPlane, execution_id: str, message: AnyMessage, act: Audit = None
) -> Mapping[str, Any]:
    """Submit a message; retry when another server commits in between.

    Raises LimitReached at once: a start that must not wait is refused, and another try would not be another start.
    """
    for _ in range(_TRIES):
        try:
            return await control.submit(execution_id, message, act)
        except LimitReached:
            raise
        except Conflict:
            await asyncio.sleep(0.05)
    raise Conflict(f"Execution {execution_id} is being changed by another server. Try again.")
