"""Prefect: its default server on SQLite, and flows in a process connected by HTTP.

A step is a task that a flow calls: the flow's process runs it and reports to the server. W4 calls the flow in a process that runs
already, which is faster than a deployment (a new process for each run, found by a poll every 10 s). W6 is a deployment, because
nothing else could be started again.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.peers.side import (
    SHORT,
    STEP_S,
    Given,
    Seen,
    again,
    answers,
    ask,
    free_port,
    given,
    killed,
    mark,
    measure,
    process,
    rounds,
    seconds,
    until,
)

MODULE = "bench.peers.prefect"
PROGRAM = Path(sys.prefix) / "bin" / "prefect"
PATIENCE_S = 20.0  # for a run to go on after a kill
FOLDER = os.environ.get("BENCH_FOLDER") or str(given().folder)  # a process of a deployment has no arguments
API = os.environ.get("PREFECT_API_URL") or f"http://127.0.0.1:{free_port()}/api"
os.environ |= {
    "BENCH_FOLDER": FOLDER,
    "PREFECT_API_URL": API,
    "PREFECT_HOME": FOLDER,
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "ERROR",
    "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
    "PREFECT_RUNNER_POLL_FREQUENCY": "1",  # of deployments: W6 need not wait 10 s before it begins
}

import httpx  # noqa: E402
from prefect import flow, serve, task  # noqa: E402 -- reads the settings above
from psycopg_pool import AsyncConnectionPool  # noqa: E402

from bench.peers import side  # noqa: E402
from bench.peers.web import web_server  # noqa: E402


def _noop(number: int) -> int:
    return number


async def _noop_async(number: int) -> int:
    return number


def _marked(number: int) -> int:
    mark(Path(FOLDER) / "marks", number)
    time.sleep(STEP_S)
    return number


noop, noop_async, marked = task(_noop), task(_noop_async), task(_marked)


def _in_a_row(steps: int) -> int:
    return sum(noop(number) for number in range(steps))


async def _in_a_row_async(steps: int) -> int:
    return sum([await noop_async(number) for number in range(steps)])


def _fan_out(items: int) -> int:
    return sum(one.result() for one in noop.map(range(items)))


in_a_row, in_a_row_async, fan_out = flow(_in_a_row), flow(_in_a_row_async), flow(_fan_out)


@flow  # type: ignore[untyped-decorator]
def marks_in_a_row(steps: int) -> int:
    """Be found by the name, as a deployment is."""
    return sum(marked(number) for number in range(steps))


CLIENTS: dict[str, Any] = {}


async def _fetch(url: str) -> Any:
    return (await CLIENTS["http"].get(url)).json()


async def _total_async(item: dict[str, int]) -> int:
    return side.total(item)


async def _save(amount: int) -> None:
    async with CLIENTS["pool"].connection() as connection:
        await connection.execute(side.INSERT, (amount,))


add, fetch, total_async, save = task(side.add), task(_fetch), task(_total_async), task(_save)


def _adding(steps: int) -> int:
    number = 0
    for _ in range(steps):
        number = add(number)
        if number < 0:
            break
    return number


async def _fetching(url: str, items: int) -> int:
    room = asyncio.Semaphore(side.AT_ONCE)

    async def one(number: int) -> int:
        async with room:
            found: int = await total_async(await fetch(f"{url}/item/{number}"))
            return found

    return sum(await asyncio.gather(*map(one, range(items))))


async def _saving(url: str) -> None:
    await save(await total_async(await fetch(f"{url}/item/7")))


def _adding_each(rows: int) -> int:
    return sum(one.result() for one in add.map(range(rows)))


adding, fetching, saving, adding_each = (flow(one) for one in (_adding, _fetching, _saving, _adding_each))


async def fetch_all(url: str, items: int) -> None:
    async with httpx.AsyncClient() as CLIENTS["http"]:
        await fetching(url, items)


async def save_all(url: str, database: str, count: int) -> None:
    pool = AsyncConnectionPool(database, min_size=4, max_size=10, open=False)
    async with httpx.AsyncClient() as CLIENTS["http"], pool as CLIENTS["pool"]:
        await asyncio.gather(*(saving(url) for _ in range(count)))


def real(told: Given) -> Seen:
    """Measure R1 to R5: the server and this process are counted."""
    side.create_totals(told)
    with server(told), web_server() as url:
        job: dict[str, Callable[[int], Any]] = {
            "R1": adding,
            "R2": lambda size: asyncio.run(fetch_all(url, size)),
            "R3": lambda size: asyncio.run(save_all(url, told.database, size)),
            "R4": adding,
            "R5": adding_each,
        }
        run = job[told.workload]
        run(2)
        if told.workload == "R4":
            return rounds(told, lambda: {"times": [seconds(lambda: run(1)) for _ in range(told.size)]})
        return rounds(told, lambda: side.cost_of_all(lambda: run(told.size)))


@contextmanager
def server(told: Given) -> Iterator[None]:
    place = API.removeprefix("http://").removesuffix("/api").split(":")
    command = [str(PROGRAM), "server", "start", "--host", place[0], "--port", place[1]]
    with process(command, told, name="server"):
        until(lambda: answers(f"{API}/health"), every=0.05)
        yield


def cold(told: Given) -> Seen:
    begun = time.perf_counter()
    with server(told), process(again(told, MODULE, "hello"), told) as app:
        assert app.wait(120) == 0
        return {"seconds": time.perf_counter() - begun}


def after_kill(told: Given) -> Seen:
    with server(told), ExitStack() as stack:
        victim = stack.enter_context(process(again(told, MODULE, "serve"), told, name="serve"))
        until(lambda: bool(ask("POST", f"{API}/deployments/filter", {})), every=0.1)
        [deployed] = ask("POST", f"{API}/deployments/filter", {})
        parameters = {"parameters": {"steps": told.size}}
        ask("POST", f"{API}/deployments/{deployed['id']}/create_flow_run", parameters)
        second = process(again(told, MODULE, "serve"), told, name="serve")
        return killed(told, victim, lambda: stack.enter_context(second), patience=PATIENCE_S)


async def at_once(count: int) -> None:
    await asyncio.gather(*(in_a_row_async(SHORT) for _ in range(count)))


def once(told: Given) -> Seen:
    match told.workload:
        case "W1":
            return {"seconds": seconds(lambda: in_a_row(told.size))}
        case "W2":
            return {"seconds": seconds(lambda: fan_out(told.size))}
        case "W3":
            return {"seconds": seconds(lambda: asyncio.run(at_once(told.size)))}
        case _:
            return {"times": [seconds(lambda: in_a_row(1)) for _ in range(told.size)]}


def measured(told: Given) -> Seen:
    with server(told):
        in_a_row(2)
        return rounds(told, lambda: once(told))


if __name__ == "__main__":
    told = given()
    if told.workload == "hello":
        in_a_row(1)
    elif told.workload == "serve":
        serve(marks_in_a_row.to_deployment("marks"))
    else:
        workloads = dict.fromkeys(("W1", "W2", "W3", "W4"), measured) | {"W5": cold, "W6": after_kill}
        measure(told, workloads | dict.fromkeys(("R1", "R2", "R3", "R4", "R5"), real))
