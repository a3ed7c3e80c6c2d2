"""Measure the cost of metrics, log lines, traces and the export.

    python bench/observe.py [--workload W1]... [--form up|cluster] [--rounds 20] [--seconds 2] [--level warning|info]

Three systems of one form take turns, each turn in another order: `off` sees nothing; `on` has metrics, JSON lines and a tenth
of the traces; `exported` also sends its log to a table. Turns are short, so that all three meet the same phases of the machine.
Prints for each workload (W1 to W4, R1 to R4, and W10 for `--seconds` a turn: per execution and step) the mean time and processor time, and how
old events were when the table got them. Traces and rows go to a small server that throws them away. Asserts nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import workloads
from bench.compare import environment
from bench.ours import mixed_load
from bench.peers.side import CREATE, ROOT
from bench.peers.web import web_server
from bench.system import Client, System, system
from bench.workloads import SHORT, chain, loop
from tests.services import postgres_server

NAMES = ("W1", "W2", "W3", "W4", "R1", "R2", "R3", "R4", "W10")
OFF = ("NOETL_METRICS_ENABLED=false", "NOETL_LOGGING_LEVEL=error", "NOETL_TRACING_ENABLED=false")
_TIME = re.compile(rb'"Timestamp":"([^"]+)"')


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a table and a receiver do; print the age of each batch."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1])) if length else b""
            if times := _TIME.findall(body):
                oldest = datetime.fromisoformat(min(times).decode()).replace(tzinfo=UTC)
                print(json.dumps([len(times), time.time() - oldest.timestamp()]), flush=True)
            answer = b"1" if body.startswith(b"EXISTS") else b""
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


@contextmanager
def target(folder: Path) -> Iterator[tuple[str, Path]]:
    """Run the server in its own process; gives its URL and its output."""
    said = folder / "got"
    with (
        said.open("w") as out,
        subprocess.Popen([sys.executable, __file__, "--serve"], cwd=ROOT, stdout=out) as process,
    ):
        try:
            while "\n" not in said.read_text():
                time.sleep(0.01)
            yield f"http://127.0.0.1:{said.read_text().splitlines()[0]}", said
        finally:
            process.kill()


def sides(url: str, level: str) -> dict[str, tuple[str, ...]]:
    on = (f"NOETL_TRACING_ENDPOINT={url}", "NOETL_LOGGING_FORMAT=json", f"NOETL_LOGGING_LEVEL={level}")
    return {"off": OFF, "on": on, "exported": (*on, f"NOETL_EXPORT_CLICKHOUSE_URL={url}")}


def jobs(client: Client, running: System, web: str, database: str, seconds: int) -> dict[str, Callable[[], Any]]:
    """Return one turn of each workload."""

    contents = {
        "W1": chain("steps", 200),
        "W2": loop("loop", 1000),
        "W3": chain("short", SHORT),
        "W4": chain("one", 1),
        "R1": workloads.adding("adding", 80),
        "R2": workloads.fetching("fetching", 150, web),
        "R3": workloads.saving("saving", web, database),
        "R4": workloads.adding("single", 1),
    }
    paths = {name: client.register(content) for name, content in contents.items()}
    found: dict[str, Callable[[], Any]] = {name: partial(client.run, paths[name]) for name in ("W1", "W2", "R1", "R2")}
    found |= {"W4": partial(_told, client, paths["W4"], 60), "R4": partial(_told, client, paths["R4"], 25)}
    found |= {"W3": partial(client.run_many, paths["W3"], 80), "R3": partial(client.run_many, paths["R3"], 25)}
    return {**found, "W10": partial(mixed_load, seconds, client, running)}


def _told(client: Client, path: str, times: int) -> None:
    for _ in range(times):
        client.run_told(path)


def measure(name: str, turns: dict[str, tuple[System, Callable[[], Any]]], rounds: int) -> None:
    """Print the mean of the turns of each side, and its ratio to that of `off`."""
    wall: dict[str, list[float]] = {side: [] for side in turns}
    cpu: dict[str, list[float]] = {side: [] for side in turns}
    order = list(turns)
    for turn in range(rounds + 1):
        random.shuffle(order)
        for side in order:
            running, job = turns[side]
            before = sum(running.cpu_ms().values())
            begun = time.perf_counter()
            seen = job()
            took, spent = 1000 * (time.perf_counter() - begun), sum(running.cpu_ms().values()) - before
            if name == "W10":  # its time is given: count per execution, and per step
                took, spent = 1000 / seen["executions_per_s"], seen["cpu_ms_per_step"]
            if turn:  # the first round only warms up
                wall[side].append(took)
                cpu[side].append(spent)
    for what, found in (("ms", wall), ("processor ms", cpu)):
        off, *others = (statistics.mean(found[side]) for side in turns)
        print(f"{name:4} {what:13}{off:9.2f}", *(f"{other:9.2f} × {other / off:.2f}" for other in others), flush=True)


def lags(said: Path) -> None:
    rows = [json.loads(line) for line in said.read_text().splitlines()[1:]]
    ages = sorted(age for _, age in rows)
    print(
        f"exported {sum(count for count, _ in rows):,} events in {len(rows)} batches; oldest event of a batch:", end=" "
    )
    print(f"median {statistics.median(ages):.2f} s, p95 {ages[int(len(ages) * 0.95)]:.2f} s, worst {ages[-1]:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what metrics, logs, traces and the export cost.")
    parser.add_argument("--workload", action="append", choices=NAMES)
    parser.add_argument("--form", choices=("up", "cluster"), default="up")
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--level", choices=("warning", "info"), default="warning")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return asyncio.run(_serve())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        url, said = stack.enter_context(target(folder))
        web, server = stack.enter_context(web_server()), stack.enter_context(postgres_server())
        server.create("work")
        with psycopg.connect(server.address("work"), autocommit=True) as connection:
            connection.execute(CREATE)
        turns: dict[str, dict[str, tuple[System, Callable[[], Any]]]] = {}
        for side, settings in sides(url, options.level).items():
            own = folder / side
            own.mkdir()
            server.create(side)
            with environment(settings):
                database = server.address(side) if options.form == "cluster" else None
                running = stack.enter_context(system(options.form, str(own), database))
            client = stack.enter_context(Client(running.url))
            for name, job in jobs(client, running, web, server.address("work"), options.seconds).items():
                turns.setdefault(name, {})[side] = running, job
        print(" " * 18, *(f"{side:>16}" for side in ("off", "on", "exported")))
        for name in options.workload or NAMES:
            measure(name, turns[name], options.rounds)
        time.sleep(3)  # what is under way arrives
        lags(said)
    return None


if __name__ == "__main__":
    main()
