"""PgQueuer: a queue of jobs on PostgreSQL, one worker process.

It has no workflows: steps in a row are jobs that each put the next one. A job has ended when its row in the log says so; the
worker gathers these before it writes them, which is its default.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from typing import Any

import asyncpg
from pgqueuer import AsyncpgDriver, AsyncpgPoolDriver, PgQueuer, Queries

from bench.peers.side import SHORT, STEP_S, Given, Seen, again, given, killed, mark, measure, process

MODULE = "bench.peers.pgqueuer"
TOLD = given()


async def work(told: Given) -> None:
    """Be the worker."""
    pool = await asyncpg.create_pool(told.database, min_size=2, max_size=10)
    queue, queries = PgQueuer(AsyncpgPoolDriver(pool)), Queries(AsyncpgPoolDriver(pool))

    async def go_on(entry: str, job: Any) -> None:
        steps, number = map(int, job.payload.split())
        if number + 1 < steps:
            await queries.enqueue(entry, f"{steps} {number + 1}".encode())

    async def noop(job: Any) -> None:
        del job

    async def chain(job: Any) -> None:
        await go_on("chain", job)

    async def marked(job: Any) -> None:
        mark(told.marks, int(job.payload.split()[1]))
        await asyncio.sleep(STEP_S)
        await go_on("marked", job)

    for function in (noop, chain, marked):
        queue.entrypoint(function.__name__)(function)
    await queue.run()


class Queue:
    """The queue as its client sees it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.queries = Queries(AsyncpgDriver(connection))
        self.ran = 0

    async def timed(self, entry: str, payloads: list[bytes], ends: int) -> float:
        """Enqueue jobs, and wait until that many have ended."""
        begun = time.perf_counter()
        await self.queries.enqueue([entry] * len(payloads), payloads, [0] * len(payloads))
        self.ran += ends
        query = "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'"
        while await self.connection.fetchval(query) < self.ran:
            await asyncio.sleep(0.002)
        return time.perf_counter() - begun


async def measured(told: Given) -> Seen:
    queue = Queue(await asyncpg.connect(told.database))
    begun = time.perf_counter()
    await queue.queries.install()
    with ExitStack() as stack:
        worker = stack.enter_context(process(again(told, MODULE, "worker"), told))
        if told.workload == "W6":
            await queue.queries.enqueue("marked", f"{told.size} 0".encode())
            second = process(again(told, MODULE, "worker"), told)
            return await asyncio.to_thread(killed, told, worker, lambda: stack.enter_context(second))
        await queue.timed("noop", [b""], 1)
        match told.workload:
            case "W1":
                return {"seconds": await queue.timed("chain", [f"{told.size} 0".encode()], told.size)}
            case "W2":
                return {"seconds": await queue.timed("noop", [b""] * told.size, told.size)}
            case "W3":
                payloads = [f"{SHORT} 0".encode()] * told.size
                return {"seconds": await queue.timed("chain", payloads, SHORT * told.size)}
            case "W4":
                return {"times": [await queue.timed("noop", [b""], 1) for _ in range(told.size)]}
            case _:
                return {"seconds": time.perf_counter() - begun}


WORKLOADS: dict[str, Any] = dict.fromkeys(
    ("W1", "W2", "W3", "W4", "W5", "W6"), lambda told: asyncio.run(measured(told))
)

if __name__ == "__main__":
    if TOLD.workload == "worker":
        asyncio.run(work(TOLD))
    else:
        measure(TOLD, WORKLOADS)
