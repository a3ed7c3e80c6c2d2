"""Measure the cost of metrics, log lines, traces and the export.

    python bench/observe.py [--form up|cluster] [--seconds 20] [--rounds 3] [--level warning|info]

Three systems of one form take turns under the mixed load of W10: `off` sees nothing; `on` has metrics, JSON lines and a tenth
of the traces; `exported` also sends its log to a table. Prints executions per second and the processor time of a step for
each, and how old events were when the table got them. Traces and rows go to a small server that throws them away. Asserts
nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.compare import environment
from bench.ours import mixed_load
from bench.peers.side import ROOT
from bench.system import Client, System, system
from tests.services import postgres_server

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


def measure(options: argparse.Namespace, running: dict[str, System]) -> None:
    clients = {side: Client(one.url) for side, one in running.items()}
    found: dict[str, list[dict[str, float]]] = {side: [] for side in running}
    for turn in range(options.rounds):
        for side in list(running) if turn % 2 else reversed(list(running)):
            found[side].append(mixed_load(options.seconds, clients[side], running[side]))
    print(" " * 18, *(f"{side:>16}" for side in running))
    for name in ("executions_per_s", "cpu_ms_per_step", "p99_ms"):
        off, *others = (statistics.median(one[name] for one in found[side]) for side in running)
        print(f"{name:18}{off:9.3f}", *(f"{other:9.3f} × {other / off:.2f}" for other in others))


def lags(said: Path) -> None:
    rows = [json.loads(line) for line in said.read_text().splitlines()[1:]]
    ages = sorted(age for _, age in rows)
    print(
        f"exported {sum(count for count, _ in rows):,} events in {len(rows)} batches; oldest event of a batch:", end=" "
    )
    print(f"median {statistics.median(ages):.2f} s, p95 {ages[int(len(ages) * 0.95)]:.2f} s, worst {ages[-1]:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what metrics, logs, traces and the export cost.")
    parser.add_argument("--form", choices=("up", "cluster"), default="up")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--level", choices=("warning", "info"), default="warning")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return asyncio.run(_serve())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        url, said = stack.enter_context(target(folder))
        server = stack.enter_context(postgres_server()) if options.form == "cluster" else None
        running = {}
        for side, settings in sides(url, options.level).items():
            own = folder / side
            own.mkdir()
            if server is not None:
                server.create(side)
            with environment(settings):
                database = None if server is None else server.address(side)
                running[side] = stack.enter_context(system(options.form, str(own), database))
        measure(options, running)
        time.sleep(3)  # what is under way arrives
        lags(said)
    return None


if __name__ == "__main__":
    main()
