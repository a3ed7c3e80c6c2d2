"""The whole system in one process: real parts on a store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from textwrap import dedent, indent
from typing import Any

from noetl.blobs.memory import MemoryBlobs
from noetl.clock import SteadyClock
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.pin import pinned
from noetl.model.events import Event
from noetl.model.messages import AnyMessage, Start
from noetl.model.refs import expanded
from noetl.ports import Blobs
from noetl.server.control_plane import LocalControlPlane
from noetl.stores.memory.store import MemoryStore
from noetl.tools import kinds
from noetl.worker.loop import Worker
from noetl.worker.processes.children import ChildPool
from noetl.worker.steps.results import StoredResults
from noetl.worker.tool_context import WorkerResources

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: test, path: tests/test}\n"


@dataclass
class System:
    """A store, its control plane and what workers need."""

    store: MemoryStore
    control: LocalControlPlane
    children: ChildPool
    shared: WorkerResources
    running: list[asyncio.Task[None]] = field(default_factory=list)
    count: int = 0

    def worker(self, name: str = "w1", **more: Any) -> Worker:
        worker = Worker(name, self.shared, **{"heartbeat_s": 0.1, **more})
        self.running.append(asyncio.create_task(worker.run()))
        return worker

    async def start(self, workflow: str, root: str = "", path: str = "tests/test", **payload: Any) -> str:
        """Register a playbook with these steps and start it."""
        text = HEAD + dedent(root) + "workflow:\n" + indent(dedent(workflow), "  ")
        data, name = pinned(normalize(parse(text, "test.yaml")))
        await self.store.register(path, text.encode(), data, name, 1)
        self.count += 1
        execution_id = str(1000 + self.count)
        await self.control.submit(execution_id, Start(f"start-{execution_id}", path, name, payload))
        return execution_id

    async def tell(self, execution_id: str, message: AnyMessage) -> None:
        await self.control.submit(execution_id, message)

    async def until(self, execution_id: str, event_type: str) -> Event:
        """Wait for the first event of a type."""
        async with asyncio.timeout(20):
            async for event in self.control.follow(execution_id):
                if event.event_type == event_type:
                    return event
        raise AssertionError(f"the execution ended without {event_type}")

    async def ended(self, execution_id: str) -> Mapping[str, Any]:
        """Wait for the end and give the execution's row."""
        async with asyncio.timeout(20):
            async for _ in self.control.follow(execution_id):
                pass
        row = await self.store.execution(execution_id)
        assert row is not None
        return {**row, "result": expanded(row.get("result"))}

    async def run(self, workflow: str, root: str = "", **payload: Any) -> Mapping[str, Any]:
        """Run a playbook to its end."""
        return await self.ended(await self.start(workflow, root, **payload))

    async def events(self, execution_id: str, event_type: str) -> list[Event]:
        return [event for event in await self.store.read(execution_id) if event.event_type == event_type]


@asynccontextmanager
async def system(
    workers: int = 1, lease_s: float = 30.0, blobs: Blobs | None = None, **more: Any
) -> AsyncIterator[System]:
    store, clock, children = MemoryStore(), SteadyClock(), ChildPool()
    try:
        blobs = blobs or MemoryBlobs()
        async with LocalControlPlane(store, clock, lease_s=lease_s, blobs=blobs, **more) as control:
            results = StoredResults(blobs, clock)
            shared = WorkerResources(control, kinds(), kinds(), clock, children, blobs, lambda: None, results=results)
            made = System(store, control, children, shared)
            for number in range(workers):
                made.worker(f"w{number + 1}")
            try:
                yield made
            finally:
                for task in made.running:
                    task.cancel()
                for found in await asyncio.gather(*made.running, return_exceptions=True):
                    if isinstance(found, BaseException) and not isinstance(found, asyncio.CancelledError):
                        raise found
    finally:
        await children.close()
        await store.close()
