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

from dbos import DBOS

from bench.peers.side import SHORT, STEP_S, Given, Seen, again, given, killed, mark, measure, process, seconds

MODULE = "bench.peers.dbos"
TOLD = given()


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

if __name__ == "__main__":
    if TOLD.workload in ("hello", "start", "go-on"):
        application(TOLD)
    else:
        measure(TOLD, WORKLOADS)
    sys.stdout.flush()
    os._exit(0)  # its threads would be waited for
