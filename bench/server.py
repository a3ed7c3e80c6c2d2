"""Measures a server and one worker over HTTP: the start, one step from submit to finish, steps in a row, and memory.

    python bench/server.py [--json] [--db URL] [--rounds 100] [--steps 200]

Starts `noetl up` as a process, on SQLite or on the PostgreSQL of `--db`, and speaks to it over one connection, as a client
would. Wall times of durable work depend on the disk: the time of a bare flush is measured in the same minute, and told
beside. Asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: NAME, path: bench/NAME}\nworkflow:\n"


def chain(name: str, steps: int) -> str:
    lines = [HEAD.replace("NAME", name)]
    for number in range(steps):
        lines.append(f"  - step: s{number}\n    tool: {{kind: noop, result: {number}}}\n")
        lines.append(f"    next: s{number + 1}\n" if number + 1 < steps else "")
    return "".join(lines)


class Client:
    """One connection that is kept."""

    def __init__(self, url: str) -> None:
        self.connection = HTTPConnection(url.removeprefix("http://"))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return json.loads(text)

    def run(self, path: str) -> None:
        """Start an execution and follow its events until it has ended."""
        started = self.ask("POST", "/api/execute", {"path": path})["execution_id"]
        self.connection.request("GET", f"/api/executions/{started}/events/stream")
        last = self.connection.getresponse().read().rsplit(b"\n\n", 2)[-2]
        assert b"event: end" in last, last


@contextmanager
def up(folder: str, db: str | None) -> Iterator[tuple[str, subprocess.Popen[str], float]]:
    """Run the server; gives its address, its process, and the seconds until it was healthy."""
    store = ["--postgres", db] if db else ["--store", str(Path(folder) / "noetl.db")]
    begun = time.perf_counter()
    command = [sys.executable, "-m", "noetl", "up", "--port", "0", *store]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            found = re.search(r"http://\S+", line)
            assert found, line + process.stderr.read()
            Client(found[0]).ask("GET", "/health")
            yield found[0], process, time.perf_counter() - begun
        finally:
            process.send_signal(signal.SIGTERM)


def cpu_ms(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def memory_mb(process: subprocess.Popen[str]) -> float:
    [kb] = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
    return int(kb) / 1024


def timed(job: Callable[[], Any], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        job()
        times.append((time.perf_counter() - begun) * 1000)
    return times


def flush_ms(folder: str) -> float:
    """Give the median time of a bare durable write."""
    with (Path(folder) / "flush").open("ab") as file:

        def one() -> None:
            file.write(b"x" * 2_000)
            file.flush()
            os.fdatasync(file.fileno())

        return statistics.median(timed(one, 50))


def measure(given: argparse.Namespace, folder: str) -> dict[str, float]:
    with up(folder, given.db) as (url, process, healthy_s):
        client = Client(url)
        idle = memory_mb(process)
        one = client.ask("POST", "/api/catalog", {"content": chain("one", 1)})["path"]
        many = client.ask("POST", "/api/catalog", {"content": chain("many", given.steps)})["path"]
        timed(lambda: client.run(one), 10)
        before = cpu_ms(process)
        ones = timed(lambda: client.run(one), given.rounds)
        between = cpu_ms(process)
        rows = timed(lambda: client.run(many), 5)
        after = cpu_ms(process)
        health = timed(lambda: client.ask("GET", "/health"), given.rounds)
        flush = flush_ms(folder)
        p50, p95 = statistics.median(ones), statistics.quantiles(ones, n=20)[-1]
        step = statistics.median(rows) / given.steps
        return {
            "healthy_s": healthy_s,
            "idle_mb": idle,
            "flush_ms": flush,
            "request_ms": statistics.median(health),
            "one_step_p50_ms": p50,
            "one_step_p95_ms": p95,
            "one_step_server_cpu_ms": (between - before) / given.rounds,
            "one_step_flushes": p50 / flush,
            "step_in_a_row_ms": step,
            "step_in_a_row_server_cpu_ms": (after - between) / (5 * given.steps),
            "step_in_a_row_flushes": step / flush,
            "after_mb": memory_mb(process),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--db")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {name: round(value, 3) for name, value in measure(given, folder).items()}
    if given.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:<28} {value:>10}")


if __name__ == "__main__":
    main()
