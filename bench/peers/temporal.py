"""Temporal: its development server on a SQLite file, and one worker process.

A step is an activity, which the server hands to the worker. The development server is all that can be installed as a package;
a cluster of it on a large database was not measured.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from bench.peers.side import SHORT, STEP_S, Given, Seen, again, free_port, given, killed, mark, measure, process

MODULE = "bench.peers.temporal"
PROGRAM = Path(sys.prefix) / "bin" / "temporal"
LIMIT = timedelta(seconds=10)  # of an activity; there is no default, and a lost one is tried again after it


async def noop(number: int) -> int:
    return number


async def marked(path: str, number: int) -> int:
    mark(Path(path), number)
    await asyncio.sleep(STEP_S)
    return number


class InARow:
    """Activities one after another."""

    async def run(self, steps: int) -> int:
        for number in range(steps):
            await workflow.execute_activity("noop", number, start_to_close_timeout=LIMIT)
        return steps


class FanOut:
    """Activities at once."""

    async def run(self, items: int) -> int:
        jobs = (workflow.execute_activity("noop", number, start_to_close_timeout=LIMIT) for number in range(items))
        return sum(await asyncio.gather(*jobs))


class MarksInARow:
    """Activities that note when they ran."""

    async def run(self, path: str, steps: int) -> int:
        for number in range(steps):
            await workflow.execute_activity("marked", args=[path, number], start_to_close_timeout=LIMIT)
        return steps


ACTIVITIES = [activity.defn(noop), activity.defn(marked)]
for _one in (InARow, FanOut, MarksInARow):
    _one.run = workflow.run(_one.run)  # type: ignore[method-assign]
WORKFLOWS = [workflow.defn(one) for one in (InARow, FanOut, MarksInARow)]


async def connected(port: str) -> Any:
    """Wait for the server."""
    last = time.monotonic() + 60
    while True:
        try:
            client = await Client.connect(f"127.0.0.1:{port}")
            await client.count_workflows()
            return client
        except RuntimeError:
            if time.monotonic() > last:
                raise
            await asyncio.sleep(0.05)


async def work(port: str) -> None:
    await Worker(await connected(port), task_queue="bench", workflows=WORKFLOWS, activities=ACTIVITIES).run()


async def timed(client: Any, name: str, given: int, number: int) -> float:
    begun = time.perf_counter()
    await client.execute_workflow(name, given, id=f"{name}-{number}", task_queue="bench")
    return time.perf_counter() - begun


async def measured(told: Given) -> Seen:
    begun, port = time.perf_counter(), str(free_port())
    server = [
        str(PROGRAM),
        "server",
        "start-dev",
        "--headless",
        "--ip",
        "127.0.0.1",
        "--port",
        port,
        "--log-level",
        "error",
    ]
    server += ["--db-filename", str(told.folder / "temporal.db")]
    with ExitStack() as stack:
        stack.enter_context(process(server, told, name="server", HOME=str(told.folder)))
        worker = stack.enter_context(process(again(told, MODULE, f"worker-{port}"), told))
        client = await connected(port)
        if told.workload == "W6":
            given = [str(told.marks), told.size]
            await client.start_workflow("MarksInARow", args=given, id="marks", task_queue="bench")
            second = process(again(told, MODULE, f"worker-{port}"), told)
            return await asyncio.to_thread(killed, told, worker, lambda: stack.enter_context(second))
        await timed(client, "InARow", 1, -1)
        match told.workload:
            case "W1":
                return {"seconds": await timed(client, "InARow", told.size, 0)}
            case "W2":
                return {"seconds": await timed(client, "FanOut", told.size, 0)}
            case "W3":
                start = time.perf_counter()
                await asyncio.gather(*(timed(client, "InARow", SHORT, number) for number in range(told.size)))
                return {"seconds": time.perf_counter() - start}
            case "W4":
                return {"times": [await timed(client, "InARow", 1, number) for number in range(told.size)]}
            case _:
                return {"seconds": time.perf_counter() - begun}


if __name__ == "__main__":
    told = given()
    if told.workload.startswith("worker-"):
        asyncio.run(work(told.workload.split("-")[1]))
    else:
        names = ("W1", "W2", "W3", "W4", "W5", "W6")
        measure(told, dict.fromkeys(names, lambda one: asyncio.run(measured(one))))
