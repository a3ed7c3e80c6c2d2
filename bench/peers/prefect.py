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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

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

from prefect import flow, serve, task  # noqa: E402 -- reads the settings above


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
        measure(told, dict.fromkeys(("W1", "W2", "W3", "W4"), measured) | {"W5": cold, "W6": after_kill})
