"""DBOS: a library in the application's process, on SQLite or on PostgreSQL.

A step is a function that the library records. W2 fans out to 1,000 asynchronous steps of one workflow, the faster of its two
ways (the other one is a queue of child workflows).
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import ExitStack
from typing import Any

import httpx
import psycopg
from dbos import DBOS
from psycopg_pool import ConnectionPool

from bench.peers.side import (
    AT_ONCE,
    CHILD,
    CREATE,
    INSERT,
    SHORT,
    STEP_S,
    Given,
    Seen,
    add,
    again,
    cost_of,
    given,
    killed,
    mark,
    measure,
    process,
    seconds,
    total,
)
from bench.peers.web import web_server

MODULE = "bench.peers.dbos"
TOLD = given()
SETTLE_S = 5.0  # for the workflows of R7 and R9 to begin to wait


def _noop(number: int) -> int:
    return number


async def _noop_async(number: int) -> int:
    return number


def _marked(number: int) -> int:
    mark(TOLD.marks, number)
    time.sleep(STEP_S)
    return number


noop, noop_async, marked = DBOS.step()(_noop), DBOS.step()(_noop_async), DBOS.step()(_marked)


def _in_a_row(steps: int) -> int:
    return sum(noop(number) for number in range(steps))


async def _fan_out(items: int) -> int:
    return sum(await asyncio.gather(*(noop_async(number) for number in range(items))))


def _marks_in_a_row(steps: int) -> int:
    return sum(marked(number) for number in range(steps))


in_a_row, fan_out, marks_in_a_row = (DBOS.workflow()(one) for one in (_in_a_row, _fan_out, _marks_in_a_row))


async def _add_async(number: int) -> int:
    return add(number)


async def _total_async(item: dict[str, int]) -> int:
    return total(item)


async def _fetch_async(url: str) -> Any:
    return (await CLIENTS["http"].get(url)).json()


def _fetch(url: str) -> Any:
    return CLIENTS["http"].get(url).json()


def _save(amount: int) -> None:
    with CLIENTS["pool"].connection() as connection:
        connection.execute(INSERT, (amount,))


CLIENTS: dict[str, Any] = {}
add_step, total_step, fetch, save = (DBOS.step()(one) for one in (add, total, _fetch, _save))
add_async, total_async, fetch_async = (DBOS.step()(one) for one in (_add_async, _total_async, _fetch_async))


def _adds_in_a_row(steps: int) -> int:
    number = 0
    for _ in range(steps):
        number = add_step(number)
        if number < 0:
            break
    return number


async def _fetch_all(url: str, items: int) -> int:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> int:
        async with room:
            found: int = await total_async(await fetch_async(f"{url}/item/{number}"))
            return found

    return sum(await asyncio.gather(*map(one, range(items))))


def _fetch_and_save(url: str) -> None:
    save(total_step(fetch(f"{url}/item/7")))


async def _add_each(rows: int) -> int:
    return sum(await asyncio.gather(*map(add_async, range(rows))))


adds_in_a_row, fetch_all, fetch_and_save, add_each = (
    DBOS.workflow()(one) for one in (_adds_in_a_row, _fetch_all, _fetch_and_save, _add_each)
)


def r1(told: Given) -> Seen:
    launch(told)
    adds_in_a_row(5)
    return cost_of(lambda: adds_in_a_row(told.size))


def r2(told: Given) -> Seen:
    launch(told)
    CLIENTS["http"] = httpx.AsyncClient()
    loop = asyncio.new_event_loop()
    with web_server() as url:
        loop.run_until_complete(fetch_all(url, 5))
        return cost_of(lambda: loop.run_until_complete(fetch_all(url, told.size)))


def r3(told: Given) -> Seen:
    launch(told)
    with psycopg.connect(told.database, autocommit=True) as connection:
        connection.execute(CREATE)
    CLIENTS["http"] = httpx.Client()
    CLIENTS["pool"] = ConnectionPool(told.database, min_size=4, max_size=10, open=True)

    def all_at_once(url: str) -> None:
        handles = [DBOS.start_workflow(fetch_and_save, url) for _ in range(told.size)]
        for handle in handles:
            handle.get_result()

    with web_server() as url:
        fetch_and_save(url)
        return cost_of(lambda: all_at_once(url))


def r4(told: Given) -> Seen:
    launch(told)
    adds_in_a_row(1)
    return {"times": [seconds(lambda: DBOS.start_workflow(adds_in_a_row, 1).get_result()) for _ in range(told.size)]}


def r5(told: Given) -> Seen:
    launch(told)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(add_each(5))
    return cost_of(lambda: loop.run_until_complete(add_each(told.size)))


def _waiting() -> Any:
    return DBOS.recv("go", timeout_seconds=300)


def _calling(children: int) -> int:
    return sum(handle.get_result() for handle in [DBOS.start_workflow(in_a_row, CHILD) for _ in range(children)])


async def _sleeping(due: float) -> None:
    await DBOS.sleep_async(due - time.time())


waiting, calling, sleeping = (DBOS.workflow()(one) for one in (_waiting, _calling, _sleeping))


def r7(told: Given) -> Seen:
    launch(told)
    first = DBOS.start_workflow(waiting)
    DBOS.send(first.get_workflow_id(), {"n": 1}, topic="go")
    first.get_result()
    handles = [DBOS.start_workflow(waiting) for _ in range(told.size)]
    time.sleep(SETTLE_S)

    def answer() -> None:
        for handle in handles:
            DBOS.send(handle.get_workflow_id(), {"n": 1}, topic="go")
        for handle in handles:
            handle.get_result()

    return cost_of(answer)


def r8(told: Given) -> Seen:
    launch(told)
    calling(5)
    return cost_of(lambda: calling(told.size))


def r9(told: Given) -> Seen:
    launch(told)

    async def wake() -> Seen:
        await sleeping(time.time() + 0.1)
        due = time.time() + SETTLE_S + 0.02 * told.size
        handles = [await DBOS.start_workflow_async(sleeping, due) for _ in range(told.size)]
        left = due - 0.5 - time.time()
        if left < 0:
            return {"absent": "the workflows were not all started before the moment"}
        await asyncio.sleep(left)
        before = time.process_time()
        for handle in handles:
            await handle.get_result()
        return {"seconds": time.time() - due, "cpu_ms": 1000 * (time.process_time() - before)}

    return asyncio.new_event_loop().run_until_complete(wake())


def launch(told: Given) -> None:
    url = f"sqlite:///{told.folder}/dbos.sqlite"
    if told.backend == "postgresql":
        url = told.database.replace("postgresql://", "postgresql+psycopg://")
    config = {"name": "bench", "system_database_url": url, "log_level": "WARNING", "application_version": "1"}
    DBOS(config=config)
    DBOS.launch()


def w1(told: Given) -> Seen:
    launch(told)
    in_a_row(5)
    return {"seconds": seconds(lambda: in_a_row(told.size))}


def w2(told: Given) -> Seen:
    launch(told)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(fan_out(5))
    return {"seconds": seconds(lambda: loop.run_until_complete(fan_out(told.size)))}


def w3(told: Given) -> Seen:
    launch(told)
    in_a_row(5)

    def all_at_once() -> None:
        handles = [DBOS.start_workflow(in_a_row, SHORT) for _ in range(told.size)]
        for handle in handles:
            handle.get_result()

    return {"seconds": seconds(all_at_once)}


def w4(told: Given) -> Seen:
    launch(told)
    in_a_row(1)
    return {"times": [seconds(lambda: DBOS.start_workflow(in_a_row, 1).get_result()) for _ in range(told.size)]}


def w5(told: Given) -> Seen:
    def cold() -> None:
        with process(again(told, MODULE, "hello"), told) as app:
            assert app.wait(60) == 0

    return {"seconds": seconds(cold)}


def w6(told: Given) -> Seen:
    with ExitStack() as stack:
        victim = stack.enter_context(process(again(told, MODULE, "start"), told))
        return killed(told, victim, lambda: stack.enter_context(process(again(told, MODULE, "go-on"), told)))


def application(told: Given) -> None:
    """Be the application of W5 and W6."""
    launch(told)
    if told.workload == "hello":
        in_a_row(1)
        return
    if told.workload == "start":
        DBOS.start_workflow(marks_in_a_row, told.size)
    time.sleep(600)


WORKLOADS: dict[str, Any] = {"W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5, "W6": w6}
WORKLOADS |= {"R1": r1, "R2": r2, "R3": r3, "R4": r4, "R5": r5, "R7": r7, "R8": r8, "R9": r9}

if __name__ == "__main__":
    if TOLD.workload in ("hello", "start", "go-on"):
        application(TOLD)
    else:
        measure(TOLD, WORKLOADS)
    sys.stdout.flush()
    os._exit(0)  # its threads would be waited for
