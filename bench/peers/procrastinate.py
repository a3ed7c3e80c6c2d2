"""Procrastinate: a queue of jobs on PostgreSQL, one worker process.

It has no workflows: steps in a row are jobs that each put the next one. A fan-out is a batch of jobs with ten at a time; W1, W4
and W6 use its default of one at a time, with which it is faster there. W6 uses its documented task that retries stalled jobs.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager, ExitStack
from subprocess import Popen
from typing import Any

import procrastinate

from bench.peers.side import SHORT, STEP_S, Given, Seen, again, given, killed, mark, measure, process

MODULE = "bench.peers.procrastinate"
TOLD = given()
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=TOLD.database))


async def _noop(number: int) -> None:
    del number


async def _chain(steps: int, number: int) -> None:
    if number + 1 < steps:
        await chain.defer_async(steps=steps, number=number + 1)


async def _marked(steps: int, number: int) -> None:
    mark(TOLD.marks, number)
    await asyncio.sleep(STEP_S)
    if number + 1 < steps:
        await marked.defer_async(steps=steps, number=number + 1)


async def _retry_stalled(context: Any, timestamp: int) -> None:
    del context, timestamp
    for job in await app.job_manager.get_stalled_jobs():
        await app.job_manager.retry_job(job)


noop, chain, marked = (app.task(name=one.__name__)(one) for one in (_noop, _chain, _marked))
if TOLD.size and TOLD.workload == "worker-1-retrying":
    stalled = app.task(name="stalled", pass_context=True, queueing_lock="stalled")(_retry_stalled)
    app.periodic(cron="* * * * * */1")(stalled)


async def succeeded(count: int) -> None:
    query = "SELECT count(*) AS count FROM procrastinate_jobs WHERE status = 'succeeded' AND task_name <> 'stalled'"
    while (await app.connector.execute_query_one_async(query))["count"] < count:
        await asyncio.sleep(0.002)


def worker(told: Given, role: str) -> AbstractContextManager[Popen[bytes]]:
    return process(again(told, MODULE, role), told)


async def timed(jobs: list[dict[str, Any]], task: Any, ran: int, ends: int) -> float:
    begun = time.perf_counter()
    await task.batch_defer_async(*jobs)
    await succeeded(ran + ends)
    return time.perf_counter() - begun


async def measured(told: Given, at_once: int) -> Seen:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        with worker(told, f"worker-{at_once}"):
            await timed([{"number": 0}], noop, 0, 1)
            match told.workload:
                case "W1":
                    return {"seconds": await timed([{"steps": told.size, "number": 0}], chain, 1, told.size)}
                case "W2":
                    return {"seconds": await timed([{"number": n} for n in range(told.size)], noop, 1, told.size)}
                case "W3":
                    jobs = [{"steps": SHORT, "number": 0} for _ in range(told.size)]
                    return {"seconds": await timed(jobs, chain, 1, SHORT * told.size)}
                case _:
                    return {"times": [await timed([{"number": 0}], noop, n + 1, 1) for n in range(told.size)]}


async def cold(told: Given) -> Seen:
    begun = time.perf_counter()
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        with worker(told, "worker-1"):
            await timed([{"number": 0}], noop, 0, 1)
            return {"seconds": time.perf_counter() - begun}


async def after_kill(told: Given) -> Seen:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        with ExitStack() as stack:
            victim = stack.enter_context(worker(told, "worker-1-retrying"))
            await marked.defer_async(steps=told.size, number=0)
            again_ = worker(told, "worker-1-retrying")
            return await asyncio.to_thread(killed, told, victim, lambda: stack.enter_context(again_))


async def work(at_once: int) -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=at_once, wait=True)


WORKLOADS: dict[str, Any] = {
    "W1": lambda told: asyncio.run(measured(told, 1)),
    "W2": lambda told: asyncio.run(measured(told, 10)),
    "W3": lambda told: asyncio.run(measured(told, 10)),
    "W4": lambda told: asyncio.run(measured(told, 1)),
    "W5": lambda told: asyncio.run(cold(told)),
    "W6": lambda told: asyncio.run(after_kill(told)),
}

if __name__ == "__main__":
    if TOLD.workload.startswith("worker-"):
        asyncio.run(work(int(TOLD.workload.split("-")[1])))
    else:
        measure(TOLD, WORKLOADS)
