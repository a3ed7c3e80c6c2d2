"""Run the workloads on NoETL: `embedded` on SQLite, `cluster` on PostgreSQL.

Embedded is `noetl up`, and `noetl run` and `noetl resume` for W5 and W6; a cluster is `noetl serve` and one `noetl worker`.
Each is started for one workload in one round, warmed up, measured once and stopped. The results include the seconds of the
bare loop that writes the same (see bench/limits.py). bench/real.py has R1 to R9. Tested in tests/bench/test_run.py.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench import workloads
from bench.limits import bare_seconds, is_database, written
from bench.peers.side import ROOT, Given, Seen, killed
from bench.real import REAL
from bench.system import Client, Place, System, noetl
from bench.workloads import SHORT, chain, loop

FORMS = ("embedded", "cluster")
WARM = 5
LOAD_CLIENTS = 4
REPLAYS = 3
GROWN = 7  # executions of W9 in a round


def measured(workload: str, size: int, place: Place) -> Seen:
    """Measure one workload once."""
    if workload == "W5":
        return _cold(place)
    if workload == "W6" and place.form == "embedded":
        return _killed_run(size, place)
    if workload == "W6":
        return _killed_worker(size, place)
    with place.system() as running, Client(running.url) as client:
        client.run(client.register(chain("warm", WARM)))
        return _RUNNING[workload](size, client, running, place)


def _beside(job: Callable[[], object], running: System, place: Place) -> tuple[float, float]:
    """Return the seconds of a job, and of the bare loop that writes as much."""
    before = written(running.store)
    begun = time.perf_counter()
    job()
    took = time.perf_counter() - begun
    return took, bare_seconds(running.store, written(running.store).since(before), place.folder)


def _once(content: str) -> Callable[[Client, System, Place], Seen]:
    def job(client: Client, running: System, place: Place) -> Seen:
        path = client.register(content)
        client.run(path)  # it is known from here on
        took, bare = _beside(lambda: client.run(path), running, place)
        return {"seconds": took, "limit": {"seconds": bare}}

    return job


def _at_once(size: int, client: Client, running: System, place: Place) -> Seen:
    path = client.register(chain("short", SHORT))
    client.run_many(path, min(size, 20))
    client.run_apart(path, min(size, 20))
    took, bare = _beside(lambda: client.run_many(path, size), running, place)
    begun = time.perf_counter()
    client.run_apart(path, size)
    return {"seconds": took, "apart_seconds": time.perf_counter() - begun, "limit": {"seconds": bare}}


def _one_step(size: int, client: Client, running: System, place: Place) -> Seen:
    path, times = client.register(chain("one", 1)), []
    for _ in range(WARM):
        client.run_told(path)

    def job() -> None:
        for _ in range(size):
            begun = time.perf_counter()
            client.run_told(path)
            times.append(time.perf_counter() - begun)

    _, bare = _beside(job, running, place)
    return {"times": times, "limit": {"times": [bare / size]}}


def _memory(size: int, client: Client, running: System, place: Place) -> Seen:
    del place
    client.run(client.register(loop("small", 100)))
    before = running.memory_mb()
    path = client.register(loop("long", size))
    begun = time.perf_counter()
    client.run(path)
    took = time.perf_counter() - begun
    growth = {name: most - before[name] for name, most in running.memory_mb("VmHWM").items()}
    return {"growth_mb": max(growth.values()), "items_per_s": size / took}


def _growing(size: int, client: Client, running: System, place: Place) -> Seen:
    """Compare fifty late steps with fifty early ones, or a tenth of all if fewer.

    Of one alone they take a twentieth of a second, in which the machine changes its speed more than anything else.
    """
    del running, place
    path = client.register(workloads.growing("growing", size))
    width, early, late, whole = size // 10, 0, 0, 0
    for _ in range(GROWN):
        at = _ends_of_steps(client, client.run(path))
        assert len(at) == size, len(at)
        early, late, whole = early + at[width * 2] - at[width], late + at[-1] - at[-1 - width], whole + at[-1] - at[0]
    return {"late_to_early": late / max(1, early), "ms_per_step": whole / GROWN / (size - 1)}


def _ends_of_steps(client: Client, execution_id: str) -> list[int]:
    """Return the end of each step in milliseconds."""
    at: list[int] = []
    after: int | None = 0
    while after is not None:
        page = client.ask("GET", f"/api/executions/{execution_id}/events?type=step.done&after={after}")
        at += [event["timestamp"] for event in page["events"]]
        after = page.get("next")
    return at


def _load(size: int, client: Client, running: System, place: Place) -> Seen:
    del place
    return mixed_load(size, client, running)


def mixed_load(size: int, client: Client, running: System) -> Seen:
    """Run several clients for `size` seconds, each with executions of three kinds.

    These are one step, five steps in a row, and one step that is a loop over 20 items.
    """
    kinds = {client.register(chain("one", 1)): 1, client.register(chain("short", SHORT)): SHORT}
    kinds[client.register(loop("wide", 20))] = 1
    lock, ran = threading.Lock(), Counter[str]()
    times: list[float] = []
    begun = time.perf_counter()

    def work() -> None:
        with Client(client.url) as own:
            for path in itertools.cycle(kinds):
                at = time.perf_counter()
                if at > begun + size:
                    return
                own.run(path)
                with lock:
                    times.append(time.perf_counter() - at)
                    ran[path] += 1

    before, wrote = sum(running.cpu_ms().values()), _rows(running.store)
    with ThreadPoolExecutor(LOAD_CLIENTS) as pool:
        for one in [pool.submit(work) for _ in range(LOAD_CLIENTS)]:
            one.result()
    took, steps = time.perf_counter() - begun, sum(count * kinds[path] for path, count in ran.items())
    rows, events = _rows(running.store)
    return {
        "executions_per_s": len(times) / took,
        "p99_ms": 1000 * workloads.quantile(times, 0.99),
        "cpu_ms_per_step": (sum(running.cpu_ms().values()) - before) / steps,
        "rows_per_step": (rows - wrote[0]) / steps,
        "events_per_step": (events - wrote[1]) / steps,
    }


def _rows(store: str) -> tuple[int, int]:
    """Count the rows of the log, and the events in them."""
    if is_database(store):
        import psycopg

        with psycopg.connect(store) as connection:
            query = "SELECT count(*), coalesce(sum(size), 0) FROM noetl.log"
            rows, events = connection.execute(query).fetchone() or (0, 0)
            return int(rows), int(events)
    import sqlite3

    opened = sqlite3.connect(store)
    try:
        rows, events = opened.execute("SELECT count(*), coalesce(sum(size), 0) FROM event_log").fetchone()
        return int(rows), int(events)
    finally:
        opened.close()


def _replay(size: int, client: Client, running: System, place: Place) -> Seen:
    """Write a long log with a loop, then read and fold it as `noetl replay` does."""
    del place
    started = client.run(client.register(loop("long", size)))
    return asyncio.run(_read_and_fold(running.store, started))


async def _read_and_fold(store: str, started: str) -> Seen:
    from noetl.cli.runtime.runner import tune_gc
    from noetl.ports.replay import Replay
    from noetl.settings import Settings
    from noetl.wiring.embedded import embedded

    settings = Settings(Path("unused.db"), database=store) if is_database(store) else Settings(Path(store))
    rates = []
    tune_gc()
    async with embedded(settings) as app:
        for _ in range(REPLAYS):
            begun = time.perf_counter()
            folded = await Replay(app.store, started).go()
            rates.append(folded.seq / (time.perf_counter() - begun))
    return {"events_per_s": statistics.median(rates)}


_RUNNING: dict[str, Callable[[int, Client, System, Place], Seen]] = {
    "W1": lambda size, *rest: _once(chain("steps", size))(*rest),
    "W2": lambda size, *rest: _once(loop("loop", size))(*rest),
    "W3": _at_once,
    "W4": _one_step,
    "W7": lambda size, *rest: _once(workloads.pipeline("pipeline", size))(*rest),
    "W8": _memory,
    "W9": _growing,
    "W10": _load,
    "W11": _replay,
    **REAL,
}


def _cold(place: Place) -> Seen:
    if place.form == "cluster":
        return {"absent": "a cluster is not started for one run"}
    command = [sys.executable, "-m", "noetl", "run", str(ROOT / "examples" / "hello.yaml")]
    times = []
    for number in range(2):  # the first one compiles what the second one loads, as an installation does
        store = ["--store", str(Path(place.folder) / f"hello{number}.db")]
        begun = time.perf_counter()
        subprocess.run(command + store, capture_output=True, check=True, cwd=place.folder)
        times.append(time.perf_counter() - begun)
    return {"seconds": times[-1]}


def _told(size: int, place: Place) -> Given:
    return Given("W6", size, Path(place.folder), "", "")


def _killed_run(size: int, place: Place) -> Seen:
    told = _told(size, place)
    playbook = told.folder / "marked.yaml"
    playbook.write_text(workloads.marked("marked", size, str(told.marks)))
    command, store = [sys.executable, "-m", "noetl"], ["--store", str(told.folder / "noetl.db")]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    with ExitStack() as stack:
        victim = subprocess.Popen([*command, "run", str(playbook), *store], **quiet)
        return killed(
            told, victim, lambda: stack.enter_context(subprocess.Popen([*command, "resume", "last", *store], **quiet))
        )


def _killed_worker(size: int, place: Place) -> Seen:
    told = _told(size, place)
    with ExitStack() as stack:
        arguments = ("serve", "--port", "0", "--store", place.database)
        _, url = stack.enter_context(noetl(place.folder, r"http://\S+", *arguments))
        client = stack.enter_context(Client(url))
        worker = noetl(place.folder, "worker", "worker", "--server", url)
        victim, _ = stack.enter_context(worker)
        started = client.start(client.register(workloads.marked("marked", size, str(told.marks))))
        again = noetl(place.folder, "worker", "worker", "--server", url)
        seen = killed(told, victim, lambda: stack.enter_context(again))
        client.until_completed(started)
        return seen
