"""Run real work on NoETL: R1 to R9, tasks and waits instead of no-ops.

R7 and R9 begin when every execution is suspended and the store holds it: R7 counts the waiting executions there, R9 the
timers. R9 is one execution per timer, not one loop, so that every timer is a row of its own in the store, and waking it
loads an execution, commits to its log and ends it. A loop would wake all its items in few commits. Used by bench/ours.py;
tested in tests/bench/test_run.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from bench import workloads
from bench.peers.side import CHILD, CREATE, CREATE_SALES, Seen, seconds, until, write_sales
from bench.peers.web import web_server
from bench.system import Client, Place, System

WARM = 5
IDLE_S = 0.05  # between the executions of R4
PATIENCE_S = 300.0
WAITING = "SELECT count(*) FROM execution WHERE status = 'waiting'"
TIMERS = "SELECT count(*) FROM timer"


def _cost_of(job: Callable[[], object], running: System, *, without: str = "") -> Seen:
    """Return the seconds of a job, and the processor time of all processes but one."""

    def spent() -> float:
        return sum(ms for name, ms in running.cpu_ms().items() if name != without)

    before = spent()
    took = seconds(job)
    return {"seconds": took, "cpu_ms": spent() - before}


def _real(content: str, client: Client, running: System) -> Seen:
    path = client.register(content)
    client.run(path)  # it is known from here on, and connections are open
    return _cost_of(lambda: client.run(path), running)


def _adding(size: int, client: Client, running: System, place: Place) -> Seen:
    del place
    return _real(workloads.adding("adding", size), client, running)


def _fetching(size: int, client: Client, running: System, place: Place) -> Seen:
    del place
    with web_server() as url:
        return _real(workloads.fetching("fetching", size, url), client, running)


def _saving(size: int, client: Client, running: System, place: Place) -> Seen:
    import psycopg

    with psycopg.connect(place.database, autocommit=True) as connection:
        connection.execute(CREATE)
    with web_server() as url:
        path = client.register(workloads.saving("saving", url, place.database))
        client.run_many(path, min(size, 10))
        return _cost_of(lambda: client.run_many(path, size), running)


def _one_python_step(size: int, client: Client, running: System, place: Place) -> Seen:
    del running, place
    path, times = client.register(workloads.adding("one", 1)), []
    for number in range(WARM + size):
        time.sleep(IDLE_S)
        took = seconds(lambda: client.run_told(path))
        times += [took] if number >= WARM else []
    return {"times": times}


def _transforming(size: int, client: Client, running: System, place: Place) -> Seen:
    del place
    client.run(client.register(workloads.transforming("few", 100)))
    return _real(workloads.transforming("transforming", size), client, running)


def _loading(size: int, client: Client, running: System, place: Place) -> Seen:
    """Load a CSV file of `size` MB into PostgreSQL.

    The processor time excludes PostgreSQL, as it does on the other side.
    """
    import psycopg

    small, whole = (Path(place.folder) / name for name in ("small.csv", "whole.csv"))
    few, rows = write_sales(small, 0.1), write_sales(whole, size)
    with psycopg.connect(place.database, autocommit=True) as connection:
        connection.execute(CREATE_SALES)
        client.run(client.register(workloads.loading("few", str(small), place.database)))
        path = client.register(workloads.loading("loading", str(whole), place.database))
        seen = _cost_of(lambda: client.run(path), running, without="postgres")
        [found] = connection.execute("SELECT count(*) FROM sales").fetchone() or (0,)
        assert found == few + rows, (found, few + rows)
    return seen


def _signalled(size: int, client: Client, running: System, place: Place) -> Seen:
    """Send a signal to each of many waiting executions, and wait for their ends."""
    del place
    path = client.register(workloads.waiting("waiting"))

    def answer(count: int) -> Seen:
        started = client.start_many(path, [{}] * count)
        until(lambda: running.count(WAITING) == count, patience=PATIENCE_S)
        posts = [(f"/api/executions/{one}/signal", {"name": "go", "data": {"n": 1}}) for one in started]
        return _cost_of(lambda: client.follow(count, posts), running)

    answer(min(size, 20))
    return answer(size)


def _calling(size: int, client: Client, running: System, place: Place) -> Seen:
    del place
    child = client.register(workloads.chain("child", CHILD))
    client.run(client.register(workloads.calling("few", child, 5)))
    return _real(workloads.calling("calling", child, size), client, running)


def _sleeping(size: int, client: Client, running: System, place: Place) -> Seen:
    """Wake executions whose timers are due at one moment; see the module's docstring.

    The moment is far enough away for all of them to be suspended before it, by the pace of a few.
    """
    del place
    path = client.register(workloads.sleeping("sleeping"))

    def wake(count: int, lead_s: float) -> tuple[float, Seen]:
        begun = time.time()
        due = begun + lead_s
        client.start_many(path, [{"until": due}] * count)
        until(lambda: running.count(TIMERS) >= count, patience=lead_s, every=0.1)
        pace = (time.time() - begun) / count
        assert time.time() < due, "the timers were due before the last one was set"
        seen = _cost_of(lambda: client.follow(count, patience=PATIENCE_S), running)
        return pace, {**seen, "seconds": time.time() - due}

    pace, _ = wake(min(size, 200), 5.0)
    return wake(size, 5.0 + 3 * size * pace)[1]


REAL: dict[str, Callable[[int, Client, System, Place], Seen]] = {
    "R1": _adding,
    "R2": _fetching,
    "R3": _saving,
    "R4": _one_python_step,
    "R5": _transforming,
    "R6": _loading,
    "R7": _signalled,
    "R8": _calling,
    "R9": _sleeping,
}
