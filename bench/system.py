"""The NoETL processes under measurement, and their HTTP client.

Two forms: `up` is server and worker in one process; `cluster` is `noetl serve` and processes of `noetl worker`. What they cost
is read from the operating system. Used by bench/server.py, bench/ours.py and bench/real.py.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from subprocess import Popen
from typing import Any, Self
from uuid import uuid4

from bench.peers.side import below, cpu_ms
from noetl.client.http import bearer
from noetl.client.local_server import local_server
from noetl.wire.requests import MOST_STARTS

CONNECTIONS = 16  # of the client that starts or signals many executions by a request each


class Client:
    """One connection that is kept."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = HTTPConnection(url.removeprefix("http://"))
        self.headers = {"Content-Type": "application/json", **bearer(local_server(url).token)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, data, self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return json.loads(text)

    def register(self, content: str) -> str:
        """Register a playbook; gives its path."""
        return str(self.ask("POST", "/api/catalog", {"content": content})["path"])

    def start(self, path: str) -> str:
        return str(self.ask("POST", "/api/execute", {"path": path})["execution_id"])

    def run(self, path: str) -> str:
        """Start an execution and follow its events until it has ended; gives its id."""
        started = self.start(path)
        self.until_completed(started)
        return started

    def run_told(self, path: str) -> str:
        """Start an execution by a request that is answered with its end; gives its id."""
        told = self.ask("POST", "/api/execute", {"path": path, "wait_ms": 30_000})
        assert told["status"] == "completed", told
        return str(told["execution_id"])

    def until_completed(self, started: str) -> None:
        path = f"/api/executions/{started}/events/stream?type=playbook.finished"
        self.connection.request("GET", path, headers=self.headers)
        text = self.connection.getresponse().read()
        assert text.endswith(b"event: end\ndata: {}\n\n"), text
        assert b'"completed"' in text, text

    def run_many(self, path: str, count: int) -> None:
        """Start executions by one request, which is answered when all have ended."""
        asked = {"path": path, "payloads": [{}] * count, "wait_ms": 30_000}
        told = self.ask("POST", "/api/execute/many", asked)["counts"]
        assert told == {"completed": count}, told

    def start_many(self, path: str, payloads: Sequence[dict[str, Any]]) -> list[str]:
        """Start executions by as few requests as possible; gives their ids."""
        started: list[str] = []
        for at in range(0, len(payloads), MOST_STARTS):
            asked = {"path": path, "payloads": payloads[at : at + MOST_STARTS]}
            started += [one["execution_id"] for one in self.ask("POST", "/api/execute/many", asked)["executions"]]
        return started

    def run_apart(self, path: str, count: int) -> None:
        """Start executions over several connections, and follow them until all ended."""
        self.follow(count, [("/api/execute", {"path": path})] * count)

    def follow(self, count: int, posts: Sequence[tuple[str, Any]] = (), patience: float = 60) -> None:
        """Follow executions until `count` ended; `posts` go over several connections."""
        asyncio.run(_follow(self.url.removeprefix("http://"), self.headers, count, posts, patience))


async def _follow(
    place: str, headers: dict[str, str], count: int, posts: Sequence[tuple[str, Any]], patience: float
) -> None:
    host, port = place.split(":")
    head = "".join(f"{name}: {value}\r\n" for name, value in {"Host": place, **headers}.items())
    feed, asking = await asyncio.open_connection(host, int(port), limit=2**24)
    asking.write(f"GET /api/executions/stream?type=playbook.finished HTTP/1.1\r\n{head}\r\n".encode())
    await feed.readuntil(b"event: begin")
    left = iter(posts)

    async def submit() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for path, asked in left:
            body = json.dumps(asked)
            writer.write(f"POST {path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            assert b" 202 " in answer or b" 200 " in answer or b" 201 " in answer, answer
            await reader.readexactly(int(re.findall(rb"(?i)content-length: (\d+)", answer)[0]))
        writer.close()

    async def follow() -> None:
        for _ in range(count):
            await feed.readuntil(b"event: playbook.finished")

    async with asyncio.timeout(patience):
        await asyncio.gather(follow(), *(submit() for _ in range(min(CONNECTIONS, len(posts)))))
    asking.close()


class System:
    """The processes of a form: their names, the server's address, and its store."""

    def __init__(self, url: str, processes: dict[str, list[int]], healthy_s: float, store: str) -> None:
        self.url = url
        self.processes = processes
        self.healthy_s = healthy_s
        self.store = store

    def cpu_ms(self) -> dict[str, float]:
        """Return the processor time of each process so far."""
        return {name: sum(map(cpu_ms, pids)) for name, pids in self._all().items()}

    def memory_mb(self, line: str = "VmRSS") -> dict[str, float]:
        """Return the memory of the largest process per name; with `VmHWM`, its peak."""
        own = {name: pids for name, pids in self.processes.items() if name != "postgres"}
        return {name: max(_memory_mb(pid, line) for pid in pids) for name, pids in own.items()}

    def count(self, query: str) -> int:
        """Return the number that a query on the store gives."""
        if self.store.startswith("postgresql://"):
            import psycopg

            with psycopg.connect(self.store, options="-c search_path=noetl") as connection:
                return int((connection.execute(query).fetchone() or (0,))[0])
        import sqlite3

        with closing(sqlite3.connect(self.store)) as opened:
            return int(opened.execute(query).fetchone()[0])

    def _all(self) -> dict[str, list[int]]:
        """Return the processes and those below them: sessions of PostgreSQL, tasks."""
        return {name: [one for pid in pids for one in (pid, *below(pid))] for name, pids in self.processes.items()}


def _memory_mb(pid: int, line: str) -> float:
    [kb] = re.findall(rf"{line}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(kb) / 1024


@contextmanager
def noetl(folder: str, wanted: str, *arguments: str, python: str = sys.executable) -> Iterator[tuple[Popen[str], str]]:
    """Run a command; gives its process and what it says when it is there."""
    command = [python, "-m", "noetl", *arguments]
    path = Path(folder) / f"{arguments[0]}-{uuid4().hex}.log"  # a file, because a pipe would fill up unread
    with (
        path.open("wb") as log,
        Popen(command, stderr=log, text=True, cwd=folder, start_new_session=True) as process,
    ):
        try:
            while "\n" not in (said := path.read_text()) and process.poll() is None:
                time.sleep(0.002)
            found = re.search(wanted, said)
            assert found, said or path.read_text()
            yield process, found[0]
        finally:
            process.send_signal(signal.SIGTERM)


@contextmanager
def system(
    form: str,
    folder: str,
    database: str | None = None,
    *,
    postmaster: int | None = None,
    workers: int = 1,
    python: str = sys.executable,
) -> Iterator[System]:
    """Run the processes of a form, on a file in the folder or on a database."""
    store = database or str(Path(folder) / "noetl.db")
    with ExitStack() as stack:
        begun = time.perf_counter()
        command = "up" if form == "up" else "serve"
        arguments = (command, "--port", "0", "--store", store)
        server, url = stack.enter_context(noetl(folder, r"http://\S+", *arguments, python=python))
        with Client(url) as first:
            first.ask("GET", "/health")
        healthy_s = time.perf_counter() - begun
        processes = {"server": [server.pid]} | ({"postgres": [postmaster]} if postmaster else {})
        if form == "cluster":
            worker = ("worker", "--server", url)
            started = [stack.enter_context(noetl(folder, "worker", *worker, python=python)) for _ in range(workers)]
            processes["worker"] = [found.pid for found, _ in started]
        yield System(url, processes, healthy_s, store)


@dataclass(frozen=True)
class Place:
    """The folder of a round, and for a cluster its database."""

    form: str
    folder: str
    database: str
    postmaster: int | None

    def system(self) -> AbstractContextManager[System]:
        if self.form == "embedded":
            return system("up", self.folder)
        return system("cluster", self.folder, self.database, postmaster=self.postmaster)


def timed(job: Callable[[], Any], rounds: int) -> list[float]:
    """Return the milliseconds of each round."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        job()
        times.append((time.perf_counter() - begun) * 1000)
    return times
