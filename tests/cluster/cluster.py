"""A cluster of real processes: two servers on one PostgreSQL, three workers that know both."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import IO

from tests.docs.pages import ROOT
from tests.services import postgres_server

KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="  # what the servers seal credentials with
_QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "64MB"}


@dataclass(frozen=True)
class Cluster:
    """Where it is: the addresses of the servers and of the database, and the folder in which the workers run."""

    servers: tuple[str, ...]
    database: str
    folder: Path


@contextmanager
def _process(log: IO[bytes], folder: Path, *arguments: str, **environment: str) -> Iterator[None]:
    started = subprocess.Popen(
        [sys.executable, "-m", "noetl", *arguments], cwd=folder, stderr=log, env={**os.environ, **environment}
    )
    with started:
        try:
            yield
        finally:
            started.terminate()
            try:
                started.wait(15)
            except subprocess.TimeoutExpired:
                started.kill()


def _until(file: Path, pattern: str) -> str:
    """Wait for a line that a process writes."""
    from time import monotonic, sleep

    end = monotonic() + 60
    while (found := re.search(pattern, file.read_text())) is None:
        assert monotonic() < end, file.read_text()
        sleep(0.02)
    return found[0]


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start it; everything ends with the block."""
    copytree(ROOT / "examples", folder / "examples")
    with ExitStack() as stack:
        address = stack.enter_context(postgres_server(**_QUICK)).address()
        home = {"NOETL_HOME": str(folder / "home"), "NOETL_ENCRYPTION_KEY": KEY}
        servers, logs = [], []
        for number in range(5):
            file = folder / f"process-{number}.log"
            log = stack.enter_context(file.open("wb"))
            logs.append(file)
            if number < 2:
                given = ["serve", "--port", "0", "--store", address]
                stack.enter_context(_process(log, folder, *given, **home))
                servers.append(_until(file, r"http://\S+"))
            else:
                known = ",".join(servers if number % 2 else reversed(servers))
                given = ["worker", "--server", known, "--capacity", "4", "--grace", "1"]
                stack.enter_context(_process(log, folder, *given))
        for file in logs[2:]:
            _until(file, r"noetl: worker \S+ at http")
        yield Cluster(tuple(servers), address, folder)
