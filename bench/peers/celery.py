"""Celery with Redis as broker and result store; by default not durable per task.

Two worker processes, one for each core, which is its default. Steps in a row are a chain, a fan-out is a chord. A task that a
killed worker held is not tried again by default, so W6 is not there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from celery import Celery, chain, chord

from bench.peers.side import SHORT, Given, Seen, free_port, given, measure, process, seconds

URL = os.environ.get("BENCH_REDIS") or f"redis://127.0.0.1:{free_port()}/0"
PROGRAMS = Path(sys.prefix) / "bin"
app = Celery("bench", broker=URL, backend=URL)
app.conf.broker_connection_retry_on_startup = True


def _noop(*_given: Any) -> int:
    return 1


def _total(given: list[int]) -> int:
    return sum(given)


noop, total = app.task(name="noop")(_noop), app.task(name="total")(_total)


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
    measure(given(), dict.fromkeys(("W1", "W2", "W3", "W4", "W5"), measured), absent)
