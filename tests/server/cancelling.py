"""Endless tasks of every kind, and what shows from outside while they run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.server.serving import Served, playbook

_PIDS = "{{ workload.folder }}/{{ workload.n }}.pids"
_SHELL = f"{{kind: shell, cmds: ['sleep 600 & echo $$ $! > {_PIDS}; wait']}}"
_PYTHON = (
    f"{{kind: python, input: {{file: '{_PIDS}'}}, code: \"import os, subprocess, time\\n"
    "more = subprocess.Popen(['sleep', '600'])\\n"
    "open(file, 'w').write(f'{os.getpid()} {more.pid}')\\ntime.sleep(600)\"}"
)
_SCRIPT = (
    "{kind: script, interpreter: sh, "
    "script: {source: {type: inline}, content: 'sleep 600 & echo $$ $! > \"$1\"; wait'}, "
    f"arguments: ['{_PIDS}']}}"
)
_SQL = "SELECT '{{ workload.n }}', pg_sleep(600)"
_ENDLESS = "SET threads = 1; SELECT count(*) FROM range(1000000000000000)"
TOOLS = {
    "http": "{kind: http, method: POST, url: '{{ workload.url }}/{{ workload.n }}'}",
    "python": _PYTHON,
    "shell": _SHELL,
    "script": _SCRIPT,
    "workbook": "{kind: workbook, task: busy, input: {folder: '{{ workload.folder }}', n: '{{ workload.n }}'}}",
    "postgres": f"{{kind: postgres, auth: 'pg_{{{{ workload.n // 10 }}}}', query: \"{_SQL}\"}}",
    "transfer": f"{{kind: transfer, source: {{kind: postgres, auth: 'pg_{{{{ workload.n // 10 }}}}', query: \"{_SQL}\"}}, "
    "target: {kind: file, path: '{{ workload.folder }}/{{ workload.n }}.csv'}}",
    "duckdb": f"{{kind: duckdb, commands: [\"{_ENDLESS}\"]}}",
    "sleep": "{kind: sleep, seconds: 600}",
    "wait": "{kind: wait, signal: never}",
    "playbook": "{kind: playbook, path: test/child, input: {folder: '{{ workload.folder }}', n: '{{ workload.n }}'}}",
}  # fmt: skip
CHILD = playbook(f"  - step: busy\n    tool: {_SHELL}\n", "child", workload={"folder": "", "n": 0})
_BUSY = [
    {"name": "busy", "kind": "shell", "cmds": [f"sleep 600 & echo $$ $! > {_PIDS.replace('workload', 'input')}; wait"]}
]
_PROCESSES = ("python", "shell", "script", "workbook", "playbook")


def book(kind: str) -> str:
    more = {"workbook": _BUSY} if kind == "workbook" else {}
    arc = "\n    next: after\n  - {step: after, tool: {kind: noop}}\n"
    workload = {"folder": "", "url": "", "n": 0}
    return playbook(f"  - step: it\n    tool: {TOOLS[kind]}{arc}", f"busy_{kind}", workload=workload, **more)


@dataclass
class Held:
    """A web service that never answers; it knows who has not hung up."""

    open: set[str] = field(default_factory=set)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        self.open.add(line)
        try:
            while await reader.read(1):
                pass
        except OSError:
            pass
        finally:
            self.open.discard(line)
            writer.close()


@dataclass
class Busy:
    """Running tasks of one kind on a server, and where to see them."""

    served: Served
    kind: str
    folder: Path
    held: Held
    database: str = ""
    started: list[str] = field(default_factory=list)

    async def start(self, count: int) -> None:
        for name in range(-(-count // 10)) if self.kind in ("postgres", "transfer") else ():
            address = f"{self.database}?application_name=pg_{name}"  # a pool of its own
            await self.served.json("PUT", f"/api/credentials/pg_{name}", {"kind": "postgres", "data": {"dsn": address}})
        await self.served.register(CHILD)
        path = await self.served.register(book(self.kind))

        async def one(number: int) -> str:
            given = {"folder": str(self.folder), "url": self.held.url, "n": number}
            return str(
                (await self.served.json("POST", "/api/execute", {"path": path, "payload": given}))["execution_id"]
            )

        self.started = list(await asyncio.gather(*map(one, range(count))))

    async def running(self) -> int:
        """Count the running tasks, as seen from outside where that is possible."""
        if self.kind == "http":
            return len(self.held.open)
        if self.kind in _PROCESSES:
            return len({pids for pids in self._pids() if any(map(is_alive, pids))})
        if self.kind in ("postgres", "transfer"):
            return await asyncio.to_thread(self._queries)
        if self.kind == "duckdb":
            return sum(thread.name == "noetl-task" for thread in threading.enumerate())
        rows = [await self.served.services.store.execution(one) for one in self.started]
        return sum(row is not None and row["status"] in ("running", "waiting") for row in rows)

    def orphans(self) -> list[int]:
        """Return every process of these tasks that is left, with its children."""
        return [pid for pids in self._pids() for pid in pids if is_alive(pid)]

    def _pids(self) -> list[tuple[int, ...]]:
        return [tuple(map(int, file.read_text().split())) for file in self.folder.glob("*.pids")]

    def _queries(self) -> int:
        with psycopg.connect(self.database) as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND starts_with(application_name, 'pg_')"
            ).fetchone()
            return int(found[0]) if found else 0


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until(look: Callable[[], Awaitable[int]], wanted: int, seconds: float) -> float:
    """Look until a number is seen; gives how long that took."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while (found := await look()) != wanted:
        assert loop.time() - begun < seconds, f"{found} instead of {wanted} after {seconds} s"
        await asyncio.sleep(0.02)
    return loop.time() - begun
