"""Control plane over a store with scripted workers: real code, no tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from noetl.clock import SteadyClock
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.pin import pinned
from noetl.model.messages import Ending, ItemEnd, Report, Start
from noetl.model.work import Lease
from noetl.server.control_plane import LocalControlPlane, Store
from tests.polling import report_wait

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: test, path: tests/test}\n"
ONE_STEP = HEAD + "workflow:\n  - step: one\n    tool: {kind: noop}\n"
_ids = count(1)


RealClock = SteadyClock


def chain(length: int) -> str:
    """Return a playbook of steps in sequence."""
    steps = [
        f"  - step: s{number}\n    tool: {{kind: noop}}\n"
        + (f"    next: s{number + 1}\n" if number + 1 < length else "")
        for number in range(length)
    ]
    return HEAD + "workflow:\n" + "".join(steps)


async def register(store: Store, text: str = ONE_STEP, path: str = "tests/test") -> str:
    data, name = pinned(normalize(parse(text)))
    await store.register(path, text.encode(), data, name, 1)
    return name


async def begin(control: LocalControlPlane, playbook: str, execution_id: str = "", **more: Any) -> str:
    """Start an execution and give its id."""
    execution_id = execution_id or str(9_000 + next(_ids))
    await control.submit(execution_id, Start(f"start-{execution_id}", "tests/test", playbook, **more))
    return execution_id


def done(lease: Lease, result: Any = None, **more: Any) -> Report:
    """Return the successful report of a lease, whole or in items."""
    name = f"{lease.work.work_id}:{lease.epoch}"
    chunk = lease.work.chunk
    if chunk is None:
        return Report(name, lease.work.run_id, lease.epoch, lease.worker, ending=Ending("ok", result), **more)
    items = tuple(ItemEnd(chunk.start + number, "ok", result) for number in range(len(chunk.items)))
    return Report(
        name,
        lease.work.run_id,
        lease.epoch,
        lease.worker,
        items=items,
        chunk=chunk.chunk_id,
        ending=Ending("ok"),
        **more,
    )


async def report_on(control: LocalControlPlane, execution_id: str, report: Report, want: int = 0) -> list[Lease]:
    """Report and return the new work."""
    return (await report_wait(control.report, execution_id, report, want)).leases


Answerer = Callable[[Lease], Any]


async def work(
    control: LocalControlPlane,
    name: str = "w",
    pools: tuple[str, ...] = ("",),
    results: Answerer | None = None,
    most: int = 1,
) -> None:
    """Work until cancelled: every piece ends well, with a result if one is said."""
    leases: list[Lease] = []
    while True:
        if not leases:
            leases = await control.claim(name, pools, most, 10.0)
            continue
        lease = leases.pop(0)
        report = done(lease, results(lease) if results is not None else None)
        leases += await report_on(control, lease.work.execution_id, report, want=max(most - len(leases), 0))


@asynccontextmanager
async def workers(control: LocalControlPlane, number: int = 1, **more: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(work(control, f"w{index}", **more)) for index in range(number)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for found in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(found, BaseException) and not isinstance(found, asyncio.CancelledError):
                raise found


async def ended(control: LocalControlPlane, store: Store, execution_id: str) -> Mapping[str, Any]:
    """Wait until an execution has ended and give its row."""
    async with asyncio.timeout(20):
        async for _ in control.follow(execution_id):
            pass
    row = await store.execution(execution_id)
    assert row is not None
    return row
