"""Celery with Redis as broker and result store; by default not durable per task.

Two worker processes, one for each core, which is its default. Steps in a row are a chain, a fan-out is a chord. A task that a
killed worker held is not tried again by default, so W6 is not there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from celery import Celery, chain, chord
from psycopg_pool import ConnectionPool

from bench.peers import side
from bench.peers.side import SHORT, Given, Seen, free_port, given, measure, process, seconds
from bench.peers.web import web_server

URL = os.environ.get("BENCH_REDIS") or f"redis://127.0.0.1:{free_port()}/0"
PROGRAMS = Path(sys.prefix) / "bin"
app = Celery("bench", broker=URL, backend=URL)
app.conf.broker_connection_retry_on_startup = True


def _noop(*_given: Any) -> int:
    return 1


def _total(given: list[int]) -> int:
    return sum(given)


noop, total = app.task(name="noop")(_noop), app.task(name="total")(_total)


CLIENTS: dict[str, Any] = {}  # of a worker's process, opened by its first task


def _fetch(url: str) -> Any:
    if "http" not in CLIENTS:
        CLIENTS["http"] = httpx.Client()
    return CLIENTS["http"].get(url).json()


def _save(amount: int, database: str) -> None:
    if "pool" not in CLIENTS:
        CLIENTS["pool"] = ConnectionPool(database, min_size=1, max_size=4, open=True)
    with CLIENTS["pool"].connection() as connection:
        connection.execute(side.INSERT, (amount,))


add, item_total = app.task(name="add")(side.add), app.task(name="item_total")(side.total)
fetch, save = app.task(name="fetch")(_fetch), app.task(name="save")(_save)


@contextmanager
def running(told: Given) -> Iterator[None]:
    port = URL.split(":")[2].split("/")[0]
    redis = [str(PROGRAMS / "redis-server"), "--port", port, "--bind", "127.0.0.1", "--dir", str(told.folder)]
    worker = [str(PROGRAMS / "celery"), "-A", "bench.peers.celery", "worker", "--concurrency", "2", "-l", "WARNING"]
    with process(redis, told, name="redis"), process(worker, told, name="worker", BENCH_REDIS=URL):
        noop.delay().get(timeout=60)
        yield


def in_a_row(steps: int) -> Any:
    return chain(*(noop.si() for _ in range(steps))).apply_async()


def at_once(count: int) -> None:
    for found in [in_a_row(SHORT) for _ in range(count)]:
        found.get(timeout=120)


def adds(steps: int) -> Any:
    return chain(add.s(0), *(add.s() for _ in range(steps - 1))).apply_async()


def fetch_all(url: str, items: int) -> None:
    each = [chain(fetch.s(f"{url}/item/{number}"), item_total.s()) for number in range(items)]
    chord(each)(total.s()).get(timeout=240)


def save_all(url: str, database: str, count: int) -> None:
    work = chain(fetch.s(f"{url}/item/7"), item_total.s(), save.s(database))
    for found in [work.apply_async() for _ in range(count)]:
        found.get(timeout=240)


def add_each(rows: int) -> None:
    chord([add.s(number) for number in range(rows)])(total.s()).get(timeout=240)


def real(told: Given) -> Seen:
    """Measure R1 to R5: this process, Redis and the worker are counted."""
    side.create_totals(told)
    with running(told), web_server() as url:
        if told.workload == "R4":
            return {"times": [seconds(lambda: add.delay(1).get(timeout=60)) for _ in range(told.size)]}
        job: dict[str, Callable[[int], Any]] = {
            "R1": lambda size: adds(size).get(timeout=240),
            "R2": lambda size: fetch_all(url, size),
            "R3": lambda size: save_all(url, told.database, size),
            "R5": add_each,
        }
        job[told.workload](5)
        return side.cost_of_all(lambda: job[told.workload](told.size))


def measured(told: Given) -> Seen:
    begun = time.perf_counter()
    with running(told):
        match told.workload:
            case "W1":
                return {"seconds": seconds(lambda: in_a_row(told.size).get(timeout=120))}
            case "W2":
                tasks = [noop.s() for _ in range(told.size)]
                return {"seconds": seconds(lambda: chord(tasks)(total.s()).get(timeout=120))}
            case "W3":
                return {"seconds": seconds(lambda: at_once(told.size))}
            case "W4":
                return {"times": [seconds(lambda: noop.delay().get(timeout=60)) for _ in range(told.size)]}
            case _:
                return {"seconds": time.perf_counter() - begun}


if __name__ == "__main__":
    absent = {"W6": "by default it does not try a task again that a killed worker held"}
    workloads = dict.fromkeys(("W1", "W2", "W3", "W4", "W5"), measured)
    measure(given(), workloads | dict.fromkeys(("R1", "R2", "R3", "R4", "R5"), real), absent)
