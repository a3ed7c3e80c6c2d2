"""Measure servers and workers over HTTP: steps, a loop, many executions.

    python bench/server.py [--json] [--form up|cluster] [--db URL|new] [--workers 1] [--rounds 100] [--repeat 3] [--only NAME]

`up` is server and worker in one process, on SQLite or on the PostgreSQL of `--db`. `cluster` is `noetl serve` and processes
of `noetl worker` on PostgreSQL, connected by WebSockets. `--db new`, the default of `cluster`, starts a PostgreSQL with default
settings. DerivedRows each wall time it prints the processor time of each process, which other load changes less, and the floor in
the same minute: a bare flush, the same commits with the same bytes by a bare loop over the same driver, and a bare round trip
over a WebSocket. `at_once` starts all executions by one request, `apart` by one request each. Asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.limits import Written, bare_seconds, flush_ms, written
from bench.system import Client, System, system, timed
from bench.workloads import SHORT, chain, loop
from tests.services import postgres_server

STEPS, ITEMS, EXECUTIONS = 200, 1_000, 200
BARE = 300  # commits of the bare loop


class Bench:
    """The measurements of one run, in order."""

    def __init__(self, running: System, given: argparse.Namespace, folder: str) -> None:
        self.running = running
        self.client = Client(running.url)
        self.given = given
        self.folder = folder
        self.found: dict[str, float] = {}

    def run(self) -> dict[str, float]:
        found, running = self.found, self.running
        found["healthy_s"] = running.healthy_s
        found |= {f"idle_mb_{name}": size for name, size in running.memory_mb().items()}
        self.measure("one_step", chain("one", 1), self.given.rounds, 1, warm=20)
        self.measure("in_a_row", chain("many", STEPS), self.given.repeat, STEPS)
        self.measure("loop", loop("loop", ITEMS), self.given.repeat, ITEMS)
        steps, client = EXECUTIONS * SHORT, self.client
        for name, run in (("at_once", client.run_many), ("apart", client.run_apart)):
            self.measure(name, chain("short", SHORT), self.given.repeat, steps, run=partial(run, count=EXECUTIONS))
        found |= {f"after_mb_{name}": size for name, size in running.memory_mb().items()}
        if not self.given.only:
            self.floors()
        return found

    def measure(
        self,
        name: str,
        content: str,
        rounds: int,
        parts: int,
        *,
        warm: int = 1,
        run: Callable[[str], object] | None = None,
    ) -> None:
        """Measure one kind of execution: wall and processor time for each of its parts."""
        if self.given.only not in (None, name):
            return
        path = self.client.register(content)

        def job() -> None:
            (run or self.client.run)(path)

        timed(job, warm)
        before = self.running.cpu_ms()
        times = timed(job, rounds)
        after = self.running.cpu_ms()
        median = statistics.median(times)
        if parts == 1:
            self.found[f"{name}_p50_ms"] = median
            self.found[f"{name}_p95_ms"] = statistics.quantiles(times, n=20)[-1]
            self.found[f"{name}_max_ms"] = max(times)
        elif name == "in_a_row":
            self.found[f"{name}_step_ms"] = median / parts
            self.found[f"{name}_step_best_ms"] = min(times) / parts
        else:
            self.found[f"{name}_per_s"] = parts / median * 1000
            self.found[f"{name}_best_per_s"] = parts / min(times) * 1000
        for process, spent in after.items():
            self.found[f"{name}_cpu_ms_{process}"] = (spent - before[process]) / (rounds * parts)

    def floors(self) -> None:
        self.found["floor_request_ms"] = statistics.median(timed(lambda: self.client.ask("GET", "/health"), 100))
        self.found["floor_flush_ms"] = flush_ms(self.folder)
        wrote = written(self.running.store)
        size = wrote.size // wrote.commits
        bare_s = bare_seconds(self.running.store, Written(BARE, BARE * size), self.folder)
        self.found |= {"floor_commit_bytes": size, "floor_commit_ms": 1000 * bare_s / BARE}
        self.found["floor_socket_ms"] = bare_socket_ms(self.folder)


ECHO = """
import socket, sys, uvicorn
async def app(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "bytes": message["bytes"]})
place = socket.create_server(("127.0.0.1", 0))
print(place.getsockname()[1], flush=True)
config = uvicorn.Config(app, log_config=None, lifespan="off", ws="websockets-sansio", loop="uvloop")
uvicorn.Server(config).run(sockets=[place])
"""


def bare_socket_ms(folder: str) -> float:
    """Return the median round trip of a frame of a report's size to an echo process."""
    import uvloop
    from websockets.asyncio.client import connect

    async def echo(port: str) -> float:
        times = []
        async with connect(f"ws://127.0.0.1:{port}", compression=None) as link:
            for _ in range(500):
                begun = time.perf_counter()
                await link.send(b"x" * 800)
                await link.recv()
                times.append((time.perf_counter() - begun) * 1000)
        return statistics.median(times)

    command = [sys.executable, "-c", ECHO]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        try:
            return uvloop.run(echo(process.stdout.readline().strip()))
        finally:
            process.send_signal(signal.SIGTERM)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--form", choices=("up", "cluster"), default="up")
    parser.add_argument("--db")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=("one_step", "in_a_row", "loop", "at_once", "apart"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        database, postmaster = given.db, None
        if given.db == "new" or (given.form == "cluster" and given.db is None):
            own = stack.enter_context(postgres_server(fsync="on"))
            database, postmaster = own.address(), own.process_id
        running = stack.enter_context(
            system(given.form, folder, database, postmaster=postmaster, workers=given.workers)
        )
        found = {name: round(value, 3) for name, value in Bench(running, given, folder).run().items()}
    if given.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:<28} {value:>10}")


if __name__ == "__main__":
    main()
