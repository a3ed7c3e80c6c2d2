"""A cluster of processes: two servers on one PostgreSQL, and three workers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

import httpx

from tests.cluster.process import PATIENCE_S, Process
from tests.cluster.wires import Wires
from tests.docs.pages import ROOT
from tests.services import PostgresServer, free_port, postgres_server

KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="  # what the servers seal credentials with
# The machine does not crash in these tests, but PostgreSQL may: a commit is with the system before it is answered.
_QUICK = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB"}


@dataclass(frozen=True)
class Cluster:
    """Where it is, what it is made of, and the folder in which the workers run."""

    servers: tuple[str, ...]
    database: str
    folder: Path
    postgres: PostgresServer
    serving: tuple[Process, ...]
    working: tuple[Process, ...]
    wires: Wires  # between the last worker and both servers

    async def restored(self) -> None:
        """Wait until both servers answer; start one that has ended, as a supervisor does.

        A server ends with an error if PostgreSQL is away when it starts.
        """
        async with asyncio.timeout(PATIENCE_S), httpx.AsyncClient(verify=False) as client:
            for server, url in zip(self.serving, self.servers, strict=True):
                while True:
                    try:
                        await client.get(f"{url}/metrics")
                        break
                    except httpx.TransportError:
                        if server.code is not None:
                            server.start()
                        await asyncio.sleep(0.1)

    def logs(self) -> str:
        """Return the last output of the processes, for debugging."""
        found = [(process.name, process.log[-4000:]) for process in (*self.serving, *self.working)]
        return "\n".join(f"--- {name}\n{text}" for name, text in found if text)


@contextmanager
def cluster(folder: Path, **environment: str) -> Iterator[Cluster]:
    """Start it; everything ends with the block."""
    copytree(ROOT / "examples", folder / "examples")
    given = {"NOETL_HOME": str(folder / "home"), "NOETL_ENCRYPTION_KEY": KEY, "NOETL_AUTH": "none", **environment}
    with ExitStack() as stack:
        postgres = stack.enter_context(postgres_server(**_QUICK))
        address = postgres.address()
        ports = [free_port(), free_port()]
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        wires = stack.enter_context(Wires.between(urls))
        serving, working = [], []
        for number, port in enumerate(ports):
            process = Process(folder, f"server-{number}", "serve", "--port", str(port), "--store", address, **given)
            serving.append(_started(stack, process))
            process.until(r"http://\S+")
        for number, known in enumerate((urls, urls[::-1], wires.urls)):
            named = {**given, "NOETL_WORKER_ID": f"worker-{number}"}
            options = ["--server", ",".join(known), "--capacity", "4", "--grace", "1"]
            working.append(_started(stack, Process(folder, f"worker-{number}", "worker", *options, **named)))
        for process in working:
            process.until(r"noetl: worker \S+ at http")
        yield Cluster(tuple(urls), address, folder, postgres, tuple(serving), tuple(working), wires)


def _started(stack: ExitStack, process: Process) -> Process:
    process.start()
    stack.callback(process.end)
    return process
