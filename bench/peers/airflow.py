"""Airflow: `airflow standalone` on PostgreSQL with the local executor.

It runs API server, scheduler, DAG processor and triggerer. A step is a task, for which a process is started. Runs are started and followed over its REST API. It was not measured with
hundreds of tasks: see `most` in bench/peers/environments.py.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.peers.side import (
    PATIENCE_S,
    Given,
    Seen,
    ask,
    free_port,
    given,
    measure,
    process,
    rounds,
    seconds,
    until,
)

PROGRAMS = Path(sys.prefix) / "bin"
DAGS = """
from airflow.sdk import DAG, task

@task
def noop():
    return 1

def in_a_row(name, steps):
    with DAG(name, schedule=None, catchup=False):
        last = None
        for number in range(steps):
            one = noop.override(task_id=f"s{number}")()
            if last is not None:
                last >> one
            last = one

in_a_row("one", 1)
in_a_row("steps", STEPS)
"""


class System:
    """Its processes as a client sees them."""

    def __init__(self, port: str) -> None:
        self.url, self.token = f"http://127.0.0.1:{port}", ""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return ask(method, f"{self.url}/api/v2{path}", body, Authorization=f"Bearer {self.token}")

    def is_there(self) -> bool:
        """Whether the API answers and both DAGs are known."""
        try:
            self.token = self.token or ask("GET", f"{self.url}/auth/token")["access_token"]
            return bool(self.ask("GET", "/dags")["total_entries"] == 2)
        except OSError:
            return False

    def run(self, name: str) -> None:
        started = self.ask("POST", f"/dags/{name}/dagRuns", {"logical_date": None})["dag_run_id"]

        def ended() -> bool:
            state = self.ask("GET", f"/dags/{name}/dagRuns/{started}")["state"]
            assert state != "failed", name
            return bool(state == "success")

        until(ended, patience=2 * PATIENCE_S, every=0.1)


@contextmanager
def running(told: Given) -> Iterator[System]:
    dags, port = told.folder / "dags", str(free_port())
    dags.mkdir()
    (dags / "bench.py").write_text(DAGS.replace("STEPS", str(told.size)))
    system = System(port)
    settings = {
        "CORE__LOAD_EXAMPLES": "False", "CORE__EXECUTOR": "LocalExecutor", "CORE__DAGS_FOLDER": str(dags),
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True", "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "CORE__EXECUTION_API_SERVER_URL": f"{system.url}/execution/", "API__HOST": "127.0.0.1", "API__PORT": port,
        "API__BASE_URL": system.url, "API_AUTH__JWT_SECRET": "bench" * 10, "USAGE_DATA_COLLECTION__ENABLED": "False",
        "DATABASE__SQL_ALCHEMY_CONN": told.database.replace("postgresql://", "postgresql+psycopg2://"),
    }  # fmt: skip
    environment = {f"AIRFLOW__{name}": value for name, value in settings.items()}
    environment |= {"AIRFLOW_HOME": str(told.folder), "SCARF_ANALYTICS": "false", "PATH": f"{PROGRAMS}:/usr/bin:/bin"}
    with process([str(PROGRAMS / "airflow"), "standalone"], told, **environment):
        until(system.is_there, patience=2 * PATIENCE_S, every=0.1)
        yield system


def measured(told: Given) -> Seen:
    begun = time.perf_counter()
    with running(told) as system:
        system.run("one")
        match told.workload:
            case "W1":
                return rounds(told, lambda: {"seconds": seconds(lambda: system.run("steps"))})
            case "W4":
                return rounds(told, lambda: {"times": [seconds(lambda: system.run("one")) for _ in range(told.size)]})
            case _:
                return {"seconds": time.perf_counter() - begun}


LONG = "not measured: it starts a process for each task, which takes about a second"
ABSENT = {"W2": LONG, "W3": LONG, "W6": "not measured: a task lost with its scheduler is found after minutes"}

if __name__ == "__main__":
    measure(given(), dict.fromkeys(("W1", "W4", "W5"), measured), ABSENT)
