"""Servers and workers whose clocks tests can set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx

from tests.cluster.cluster import KEY
from tests.cluster.process import PATIENCE_S, Process
from tests.services import PostgresServer, free_port

LEASE_S = 4  # longer than a stall of a busy machine that the reaper does not notice (3 s)
_SHIM = Path(__file__).parent / "shim"
# A step that outlasts its lease, a wait for a duration, and a last step. Each begun step leaves a line.
PLAYBOOK = """
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: long, path: clocks/long }
workload: { n: 0 }
workflow:
  - step: work
    tool: { kind: shell, command: "echo {{ workload.n }} >> begun.txt && sleep 5" }
    next: nap
  - step: nap
    tool: { kind: sleep, seconds: 1 }
    next: last
  - step: last
    tool: { kind: shell, command: "echo {{ workload.n }} >> ended.txt" }
"""


class Skewed(Process):
    """A process with clocks of its own."""

    def __init__(self, folder: Path, name: str, *arguments: str, ahead_s: int = 0, **environment: str) -> None:
        self._clocks = folder / f"{name}.clock"
        self.set(ahead_s)
        path = os.pathsep.join([str(_SHIM), os.environ.get("PYTHONPATH", "")])
        super().__init__(folder, name, *arguments, PYTHONPATH=path, SHIFTED_CLOCKS=str(self._clocks), **environment)

    def set(self, ahead_s: int, slept_s: int = 0) -> None:
        """Set the system clock, and how long the machine slept."""
        fresh = self._clocks.with_suffix(".new")
        fresh.write_text(f"{ahead_s} {slept_s}", encoding="ascii")
        fresh.replace(self._clocks)


@dataclass
class Place:
    """A store, and the processes on it."""

    folder: Path
    store: str
    stack: ExitStack
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def start(self, command: str, *arguments: str, ahead_s: int = 0) -> Skewed:
        """Start a process whose system clock is ahead."""
        environment = {
            "NOETL_HOME": str(self.folder),
            "NOETL_ENCRYPTION_KEY": KEY,
            "NOETL_LEASE_SECONDS": str(LEASE_S),
            "NOETL_AUTH": "none",
        }
        name = f"{command}-{next(self.numbers)}"
        process = Skewed(self.folder, name, command, *arguments, ahead_s=ahead_s, **environment)
        process.start()
        self.stack.callback(process.end)
        return process

    def server(self, command: str = "up", ahead_s: int = 0) -> tuple[Skewed, httpx.Client]:
        """Start a server; return it and a client of it."""
        port = free_port()
        process = self.start(command, "--port", str(port), "--store", self.store, ahead_s=ahead_s)
        process.until(r"http://\S+")
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S, verify=False)
        self.stack.callback(client.close)
        return process, client

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return sorted(file.read_text(encoding="utf-8").split()) if file.exists() else []


@contextmanager
def place(folder: Path, kind: str, postgres: PostgresServer) -> Iterator[Place]:
    """Yield a new store of a kind; its processes end with the block."""
    store = str(folder / "noetl.db")
    if kind == "postgres":
        name = f"clocks_{folder.name.lower().replace('-', '_')}"
        postgres.create(name)
        store = postgres.address(name)
    with ExitStack() as stack:
        yield Place(folder, store, stack)


def execute(client: httpx.Client, text: str = PLAYBOOK, **payload: Any) -> str:
    """Start an execution of a playbook and return its id."""
    answer = client.post("/api/catalog", json={"content": text})
    answer.raise_for_status()
    answer = client.post("/api/execute", json={"path": answer.json()["path"], "payload": payload})
    answer.raise_for_status()
    return str(answer.json()["execution_id"])


def ended(client: httpx.Client, execution_id: str) -> list[dict[str, Any]]:
    """Wait until an execution has completed; return its events."""
    until(lambda: status(client, execution_id) not in ("running", "waiting"), f"the end of {execution_id}")
    events = client.get(f"/api/executions/{execution_id}/events", params={"limit": 1000}).json()["events"]
    assert status(client, execution_id) == "completed", events[-3:]
    return list(events)


def status(client: httpx.Client, execution_id: str) -> str:
    return str(client.get(f"/api/executions/{execution_id}").json()["status"])


def until(condition: Any, what: str) -> None:
    """Wait for something that other processes do."""
    end = monotonic() + PATIENCE_S
    while not condition():
        assert monotonic() < end, f"{what} did not come"
        sleep(0.05)
