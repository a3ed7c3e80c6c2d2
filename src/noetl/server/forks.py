"""Begins a fork in the store: a new execution that shares an old one's history up to a step or an event.

Which history that is, is decided in `engine.fork`. The command line and the API share it. Tested in
tests/acceptance/executions/test_run_fork.py and tests/server/test_api_executions.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from msgspec.structs import replace

from noetl.engine.evolve import fold
from noetl.engine.fork import fork, place, shared
from noetl.engine.start import check_schema
from noetl.engine.state import Execution
from noetl.model.errors import Conflict, UnknownExecution
from noetl.model.messages import AnyMessage, PatchCtx, Resume
from noetl.ports import Act, Catalog, EventLog
from noetl.server.plans import Plans

if TYPE_CHECKING:
    from noetl.server.control import LocalControl

_TRIES = 20


class Store(EventLog, Catalog, Protocol):
    """A log and a catalog."""


@dataclass(frozen=True, slots=True)
class Made:
    """A fork: its state before it moves, and the event that it goes on after."""

    state: Execution
    seq: int


async def fork_from(
    store: Store,
    control: LocalControl,
    source: str,
    execution_id: str,
    start: str,
    *,
    ctx: Mapping[str, Any],
    workload: Mapping[str, Any],
    at: int,
    playbook: str = "",
    pool: str = "",
    act: Act = None,
) -> Made:
    """Write a fork down and let it go on."""
    events = await store.read(source)
    if not events:
        raise UnknownExecution(f"there is no execution {source} in this store")
    pinned = playbook or str(events[0].payload.get("playbook", ""))
    seq = place(events, start)
    copied = shared(events, seq, execution_id, at=at, playbook=pinned, pool=pool, workload=workload)
    plan = await Plans(store, control.defaults).get(pinned)
    check_schema(plan, fold(execution_id, copied).workload)
    made = fork(plan, copied, execution_id)
    first = replace(made, inbox=())
    receipt = await store.commit([first if act is None else replace(first, audit=(act,))])
    if receipt.commits[0].status not in ("applied", "duplicate"):
        raise Conflict(f"the id {execution_id} is that of another execution; fork again.")
    state = fold(execution_id, made.events)
    # The message also moves the tokens that the cut left waiting.
    message: AnyMessage = PatchCtx(uuid4().hex, ctx, "fork") if ctx else Resume(uuid4().hex)
    await tell_surely(control, execution_id, message)
    return Made(state, seq)


async def tell_surely(
    control: LocalControl, execution_id: str, message: AnyMessage, act: Act = None
) -> Mapping[str, Any]:
    """Give an execution a message; somebody else's commit in between is not the caller's trouble."""
    for _ in range(_TRIES):
        try:
            return await control.submit(execution_id, message, act)
        except Conflict:
            await asyncio.sleep(0.05)
    raise Conflict(f"execution {execution_id} is changed by somebody else all the time; try again.")
