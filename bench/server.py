"""Measures servers and workers over HTTP: one step from submit to finish, steps in a row, a loop, many executions at once.

    python bench/server.py [--json] [--form up|cluster] [--db URL|new] [--workers 1] [--rounds 100] [--repeat 3] [--only NAME]

`up` is server and worker in one process, on SQLite or on the PostgreSQL of `--db`. `cluster` is `noetl serve` and processes
of `noetl worker` on PostgreSQL, which speak over WebSockets. `--db new`, which `cluster` takes by itself, starts a PostgreSQL
with default settings. Beside each wall time stands the processor time that each process spent, which a busy machine changes
less, and the floor in the same minute: a bare flush, the same commits with the same bytes by a bare loop over the same driver,
and a bare round trip over a WebSocket. Asserts nothing.
"""

from __future__ import annotations

import argparse
import asyncio
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
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.services import PostgresServer, postgres_server

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: NAME, path: bench/NAME}\nworkflow:\n"
STEPS, ITEMS, EXECUTIONS, SHORT = 200, 1_000, 200, 5
CONNECTIONS = 16  # of the client that submits many executions at once


def chain(name: str, steps: int) -> str:
    lines = [HEAD.replace("NAME", name)]
    for number in range(steps):
        lines.append(f"  - step: s{number}\n    tool: {{kind: noop, result: {number}}}\n")
        lines.append(f"    next: s{number + 1}\n" if number + 1 < steps else "")
    return "".join(lines)


def loop(name: str, items: int) -> str:
    head = f'  - step: s\n    loop: {{in: "{{{{ range({items}) }}}}", iterator: i, spec: {{mode: parallel}}}}\n'
    return HEAD.replace("NAME", name) + head + "    tool: {kind: noop}\n"


class Client:
    """One connection that is kept."""

    def __init__(self, url: str) -> None:
        self.url = url
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
        self.connection.request("GET", f"/api/executions/{started}/events/stream?type=playbook.finished")
        text = self.connection.getresponse().read()
        assert text.endswith(b"event: end\ndata: {}\n\n"), text
        assert b'"completed"' in text, text

    def run_many(self, path: str, count: int) -> None:
        """Submit executions at once over several connections, and follow all until each has ended."""
        asyncio.run(_run_many(self.url.removeprefix("http://"), path, count))


async def _run_many(place: str, path: str, count: int) -> None:
    host, port = place.split(":")
    head = f"Host: {place}\r\nContent-Type: application/json\r\n"
    feed, asking = await asyncio.open_connection(host, int(port), limit=2**24)
    asking.write(f"GET /api/executions/stream?type=playbook.finished HTTP/1.1\r\n{head}\r\n".encode())
    await feed.readuntil(b"event: begin")
    body = json.dumps({"path": path})
    request = f"POST /api/execute HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    left = iter(range(count))

    async def submit() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for _ in left:
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert b" 202 " in answer or b" 200 " in answer or b" 201 " in answer, answer
            await reader.readexactly(int(re.findall(rb"(?i)content-length: (\d+)", answer)[0]))
        writer.close()

    async def follow() -> None:
        ended = 0
        while ended < count:
            await feed.readuntil(b"event: playbook.finished")
            ended += 1

    async with asyncio.timeout(60):
        await asyncio.gather(follow(), *(submit() for _ in range(CONNECTIONS)))
    asking.close()


class System:
    """The processes of a form: what they are called, and where the server is."""

    def __init__(self, url: str, processes: dict[str, list[int]], healthy_s: float, database: str | None) -> None:
        self.url = url
        self.processes = processes
        self.healthy_s = healthy_s
        self.database = database

    def cpu_ms(self) -> dict[str, float]:
        """Give the processor time that each of them has spent so far."""
        return {name: sum(map(_cpu_ms, pids)) for name, pids in self._all().items()}

    def memory_mb(self) -> dict[str, float]:
        return {name: max(map(_memory_mb, pids)) for name, pids in self.processes.items() if name != "postgres"}

    def _all(self) -> dict[str, list[int]]:
        found = dict(self.processes)
        for postmaster in found.get("postgres", []):
            found["postgres"] = [postmaster, *map(int, _children(postmaster))]
        return found


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _cpu_ms(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) * 1000 / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    [kb] = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(kb) / 1024


@contextmanager
def noetl(folder: str, wanted: str, *arguments: str) -> Iterator[tuple[int, str]]:
    """Run a command; gives its process and what it says when it is there."""
    command = [sys.executable, "-m", "noetl", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            found = re.search(wanted, line)
            assert found, line + process.stderr.read()
            yield process.pid, found[0]
        finally:
            process.send_signal(signal.SIGTERM)


@contextmanager
def system(given: argparse.Namespace, folder: str) -> Iterator[System]:
    """Run the processes of a form."""
    with ExitStack() as stack:
        database, postmaster = given.db, None
        if given.db == "new" or (given.form == "cluster" and given.db is None):
            own: PostgresServer = stack.enter_context(postgres_server(fsync="on"))
            database, postmaster = own.address(), own.process_id
        store = ["--store", database or str(Path(folder) / "noetl.db")]
        begun = time.perf_counter()
        command = "up" if given.form == "up" else "serve"
        pid, url = stack.enter_context(noetl(folder, r"http://\S+", command, "--port", "0", *store))
        Client(url).ask("GET", "/health")
        healthy_s = time.perf_counter() - begun
        processes = {"server": [pid]} | ({"postgres": [postmaster]} if postmaster else {})
        if given.form == "cluster":
            worker = ("worker", "--server", url)
            started = [stack.enter_context(noetl(folder, "worker", *worker)) for _ in range(given.workers)]
            processes["worker"] = [found for found, _ in started]
        yield System(url, processes, healthy_s, database)


def timed(job: Callable[[], Any], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        job()
        times.append((time.perf_counter() - begun) * 1000)
    return times


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
        self.measure("at_once", chain("short", SHORT), self.given.repeat, EXECUTIONS * SHORT, many=EXECUTIONS)
        found |= {f"after_mb_{name}": size for name, size in running.memory_mb().items()}
        if not self.given.only:
            self.floors()
        return found

    def measure(self, name: str, content: str, rounds: int, parts: int, *, warm: int = 1, many: int = 0) -> None:
        """Measure one kind of execution: wall and processor time for each of its parts."""
        if self.given.only not in (None, name):
            return
        path = self.client.ask("POST", "/api/catalog", {"content": content})["path"]

        def job() -> None:
            self.client.run_many(path, many) if many else self.client.run(path)

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
        if self.running.database is not None:
            self.found |= asyncio.run(bare_commits(self.running.database))
        self.found["floor_socket_ms"] = bare_socket_ms(self.folder)


def flush_ms(folder: str) -> float:
    """Give the median time of a bare durable write."""
    with (Path(folder) / "flush").open("ab") as file:

        def one() -> None:
            file.write(b"x" * 2_000)
            file.flush()
            os.fdatasync(file.fileno())

        return statistics.median(timed(one, 50))


async def bare_commits(database: str) -> dict[str, float]:
    """Give the median time of a commit that appends as many bytes as a step's events have."""
    import asyncpg

    connection = await asyncpg.connect(database)
    try:
        [size] = await connection.fetchrow(
            "SELECT coalesce(sum(pg_column_size(e)) / nullif(count(*) FILTER (WHERE event_type = 'step.done'), 0), 2000)"
            "::int FROM noetl.event_log AS e"
        )
        await connection.execute("CREATE TABLE IF NOT EXISTS bare (number bigint PRIMARY KEY, data bytea)")
        times = []
        for number in range(300):
            begun = time.perf_counter()
            await connection.execute("INSERT INTO bare VALUES ($1, $2)", number, os.urandom(size))
            times.append((time.perf_counter() - begun) * 1000)
        await connection.execute("DROP TABLE bare")
        return {"floor_commit_bytes": size, "floor_commit_ms": statistics.median(times)}
    finally:
        await connection.close()


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
    """Give the median round trip of a frame as long as a report to a process that only sends it back."""
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
    parser.add_argument("--only", choices=("one_step", "in_a_row", "loop", "at_once"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, system(given, folder) as running:
        found = {name: round(value, 3) for name, value in Bench(running, given, folder).run().items()}
    if given.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:<28} {value:>10}")


if __name__ == "__main__":
    main()
