"""The table of what tasks can do in each sandbox, made by trying every cell.

`python -m tests.confinement.table` writes it into the page, for the sandboxes that this machine has.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from noetl.settings import Settings
from noetl.wiring.embedded import confined, egress_rules
from noetl.worker.http.clients import HttpClient
from noetl.worker.processes import network, sandbox
from noetl.worker.processes.bounds import Bounds
from tests.tools.attempts import Attempts

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "confine-tasks.md"
HEAD: Final = "| sandbox | kind | reads | writes | network | processes |\n|---|---|---|---|---|---|\n"
KINDS: Final = ("python", "shell", "script", "artifact", "duckdb", "transfer", "http", "postgres")
_PROCESSES: Final = ("python", "shell", "script")
_PUBLIC: Final = "93.184.216.34"
_MOST: Final = 40
_LANDLOCK: Final = 6  # the first version that keeps signals inside


def missing(mode: str) -> str | None:
    """Return why this machine cannot show a sandbox as the page describes it."""
    if mode != "none" and sandbox.problem(mode) is None:
        if sandbox.landlock_version() < _LANDLOCK:
            return (
                f"Landlock of this kernel has version {sandbox.landlock_version()}, and the page describes {_LANDLOCK}"
            )
        return network.problem()
    return sandbox.problem(mode)


class Trial:
    """One sandbox with its defaults: `none` for one user, others for several."""

    def __init__(self, mode: str, folder: Path) -> None:
        self.mode = mode
        self.folder = folder
        for name in ("own", "closed", "shared"):
            (folder / name).mkdir(parents=True)
        for name in ("own/key", "closed/file"):
            (folder / name).write_text('{"a":1}\n')
        (folder / "own" / "noetl.db").touch()
        given = Settings(folder / "own" / "noetl.db", sandbox=mode, sandbox_write=(str(folder / "shared"),))
        made = confined(given, several_users=mode != "none")
        self.egress = egress_rules(made)
        self.client = HttpClient(self.egress)
        self.attempts = Attempts(
            folder=str(folder),
            http=self.client.get(),
            sandbox=made.sandbox,
            hidden=[str(folder / "own" / name) for name in ("noetl.db", "key")],
            writable=list(made.sandbox_write),
            has_network=made.task_network is not False,
            egress=self.egress,
            bounds=Bounds(4 << 30, processes=_MOST if made.task_limits[0] else 0),
        )

    async def rows(self) -> list[str]:
        """Return the lines of this sandbox."""
        found = []
        try:
            for kind in KINDS:
                cells = [await self.reads(kind), await self.writes(kind), await self.reaches(kind)]
                cells.append(await self.starts(kind))
                found.append(f"| `{self.mode}` | `{kind}` | {' | '.join(cells)} |\n")
        finally:
            await self.attempts.close()
            await self.client.close()
        return found

    async def works(self, kind: str, fields: Mapping[str, Any], **more: Any) -> bool:
        return (await self.attempts.run(kind, fields, **more)).outcome.error is None

    # Files

    async def reads(self, kind: str) -> str:
        if kind in ("http", "postgres"):
            return "–"
        others = subprocess.Popen(["sleep", "600"], env={"SEEN": "seen"})
        try:
            own = [await self.read(kind, f"{self.folder}/own/key"), await self.sees(kind, others.pid)]
        finally:
            others.kill()
            others.wait()
        assert await self.read(kind, f"{self.folder}/closed/file"), kind
        assert own[0] == own[1], (kind, own)
        return "all files" if own[0] else "all but the worker's own files"

    async def read(self, kind: str, path: str) -> bool:
        target = {"kind": "file", "path": f"{self.folder}/shared/copy.jsonl"}
        tries: dict[str, dict[str, Any]] = {
            "python": {"code": f"open({path!r}).read()"},
            "shell": {"command": f"cat {path}"},
            "script": {"uri": path, "interpreter": "true"},
            "artifact": {"action": "get", "uri": f"file://{path}"},
            "duckdb": {"query": f"SELECT content FROM read_text('{path}')"},
            "transfer": {"source": {"kind": "file", "path": path, "format": "jsonl"}, "target": target},
        }
        return await self.works(kind, tries[kind])

    async def sees(self, kind: str, pid: int) -> bool:
        """Return whether the kind reads the environment of a process that is not its own."""
        path = f"/proc/{pid}/environ"
        if kind == "transfer":
            return await self.read(kind, f"{self.folder}/own/key")  # an environment is no row
        if kind in ("shell", "script"):
            tried = await self.attempts.run("shell", {"command": f"grep -c SEEN {path}"})
            return tried.outcome.error is None
        if kind == "python":
            tried = await self.attempts.python(f"result = b'SEEN' in open({path!r}, 'rb').read()")
            return tried.outcome.result is True
        return await self.read(kind, path)

    async def writes(self, kind: str) -> str:
        if kind in ("http", "postgres"):
            return "–"
        closed, shared = [await self.write(kind, f"{self.folder}/{name}/new.jsonl") for name in ("closed", "shared")]
        assert shared, kind
        if closed:
            return "all files"
        return "its folder, `NOETL_SANDBOX_WRITE`" if await self.writes_own(kind) else "`NOETL_SANDBOX_WRITE`"

    async def write(self, kind: str, path: str) -> bool:
        Path(self.folder, "write.sh").write_text(f"echo x > {path}\n")
        source = {"kind": "file", "path": f"{self.folder}/closed/file", "format": "jsonl"}
        tries: dict[str, dict[str, Any]] = {
            "python": {"code": f"open({path!r}, 'w').write('x')"},
            "shell": {"command": f"echo x > {path}"},
            "script": {"uri": f"{self.folder}/write.sh"},
            "artifact": {"action": "put", "uri": f"file://{path}", "data": "x"},
            "duckdb": {"command": f"COPY (SELECT 1) TO '{path}'"},
            "transfer": {"source": source, "target": {"kind": "file", "path": path}, "mode": "overwrite"},
        }
        return await self.works(kind, tries[kind])

    async def writes_own(self, kind: str) -> bool:
        if kind == "python":
            code = "import os\nopen(os.environ['TMPDIR'] + '/x', 'w').write('x')"
            return await self.works("python", {"code": code})
        Path(self.folder, "own.sh").write_text("echo x > $TMPDIR/x\n")
        tries = {"shell": {"command": "echo x > $TMPDIR/x"}, "script": {"uri": f"{self.folder}/own.sh"}}
        return kind in tries and await self.works(kind, tries[kind])

    # Network

    async def reaches(self, kind: str) -> str:
        if kind == "artifact":
            return "–"
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            trying = asyncio.create_task(self.connect(kind, server.getsockname()[1]))
            private = await self.accepts(server, trying)
        if private:
            return "all addresses"
        if kind in (*_PROCESSES, "duckdb"):
            return "none"
        assert self.egress is not None
        assert self.egress.refusal(_PUBLIC, ip_address(_PUBLIC)) is None
        return "public addresses, `NOETL_EGRESS_PRIVATE`"

    async def accepts(self, server: socket.socket, trying: asyncio.Task[Any]) -> bool:
        """Return whether a connection arrived before the task ended."""
        accepting = asyncio.create_task(asyncio.get_running_loop().sock_accept(server))
        await asyncio.wait([accepting, trying], return_when=asyncio.FIRST_COMPLETED)
        arrived = accepting.done()
        if arrived:
            accepting.result()[0].close()
            server.close()  # what tries again is refused, instead of waiting for an answer
        for task in (accepting, trying):
            task.cancel()
        await asyncio.gather(accepting, trying, return_exceptions=True)
        return arrived

    async def connect(self, kind: str, port: int) -> None:
        call = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
        Path(self.folder, "call.py").write_text(call)
        url = f"http://127.0.0.1:{port}/x"
        target = {"kind": "file", "path": f"{self.folder}/shared/copy.jsonl"}
        tries: dict[str, dict[str, Any]] = {
            "python": {"code": call},
            "shell": {"command": [sys.executable, "-c", call]},
            "script": {"uri": f"{self.folder}/call.py", "interpreter": sys.executable},
            "duckdb": {"command": f"INSTALL httpfs FROM '{url}'"},
            "transfer": {"source": {"kind": "http", "url": url}, "target": target},
            "http": {"url": url},
            "postgres": {"query": "SELECT 1"},
        }
        auth = {"dsn": f"postgresql://127.0.0.1:{port}/d"} if kind == "postgres" else None
        await self.attempts.run(kind, tries[kind], auth=auth)

    # Processes

    async def starts(self, kind: str) -> str:
        if kind not in _PROCESSES:
            return "–"
        most = "any number" if await self.starts_many(kind) else "a limited number"
        free = "" if await self.signals(kind) else ", signals to no others"
        assert await self.leaves_nothing(kind), kind
        return f"{most}{free}, ended with the task"

    async def in_process(self, kind: str, code: str) -> Any:
        """Run Python code that prints its answer, in a process of the kind."""
        place = Path(self.folder, "code.py")
        place.write_text(code)
        if kind == "python":
            return await self.attempts.python(code)
        if kind == "shell":
            return await self.attempts.run("shell", {"command": [sys.executable, str(place)]})
        return await self.attempts.run("script", {"uri": str(place), "interpreter": sys.executable})

    async def starts_many(self, kind: str) -> bool:
        code = f"""
import os, time
for _ in range({_MOST * 3}):
    if os.fork() == 0:
        time.sleep(600)
time.sleep(3)
"""
        return (await self.in_process(kind, code)).outcome.error is None

    async def signals(self, kind: str) -> bool:
        other = subprocess.Popen(["sleep", "600"])
        try:
            tried = await self.in_process(kind, f"import os, signal\nos.kill({other.pid}, signal.SIGTERM)")
            return tried.outcome.error is None and other.wait() == -signal.SIGTERM
        finally:
            other.kill()
            other.wait()

    async def leaves_nothing(self, kind: str) -> bool:
        """Start a process that detaches itself twice; return whether it is gone."""
        mark = f"{self.mode}{kind}{os.getpid()}"
        code = f"""
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        for fd in range(3):
            os.close(fd)
        os.execve({sys.executable!r}, ["{mark}", "-c", "import time; time.sleep(600)"], {{}})
    os._exit(0)
os.wait()
"""
        tried = await self.in_process(kind, code)
        assert tried.outcome.error is None, tried.outcome.error
        running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
        return not any(line.startswith(mark.encode()) for line in running)


def written(mode: str) -> list[str]:
    """Return the lines of a sandbox on the page."""
    return [line for line in PAGE.read_text().splitlines(keepends=True) if line.startswith(f"| `{mode}` | `")]


async def _all() -> None:
    lines: list[str] = []
    for mode in sandbox.MODES:
        with tempfile.TemporaryDirectory() as folder:
            lines += await Trial(mode, Path(folder)).rows() if missing(mode) is None else written(mode)
        if missing(mode) is not None:
            print(f"{mode}: kept, as {missing(mode)}")
    text = PAGE.read_text()
    begin = text.index(HEAD) + len(HEAD)
    end = re.compile(r"^(?!\|)", re.MULTILINE).search(text, begin)
    assert end is not None
    PAGE.write_text(text[:begin] + "".join(lines) + text[end.start() :])


if __name__ == "__main__":
    asyncio.run(_all())
