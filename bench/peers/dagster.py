"""Dagster: `dagster dev` on its default SQLite files, with runs over GraphQL.

It runs web server, daemon and code server. A step is an op. Each run is a process of its own; inside it the ops run one after another, which is faster than the default of
a process for each op too. After a kill a run continues only on request.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

from dagster import Definitions, In, Nothing, in_process_executor, job, op

from bench.peers.side import (
    ROOT,
    STEP_S,
    Given,
    Seen,
    ask,
    free_port,
    given,
    killed,
    mark,
    measure,
    process,
    rounds,
    seconds,
    until,
)

PROGRAM = Path(sys.prefix) / "bin" / "dagster"
PATIENCE_S = 20.0  # for a run to go on after a kill
STEPS, MARKS = "BENCH_STEPS", "BENCH_MARKS"
WHERE = "{repositoriesOrError {... on RepositoryConnection {nodes {name location {name}}}}}"
LAUNCH = """mutation($given: ExecutionParams!) {launchRun(executionParams: $given) {
    ... on LaunchRunSuccess {run {runId}} ... on PythonError {message}}}"""
STATUS = "query($id: ID!) {runOrError(runId: $id) {... on Run {status}}}"


def _noop() -> None:
    return None


def _marking(number: int) -> Any:
    def marked() -> None:
        mark(Path(os.environ[MARKS]), number)
        time.sleep(STEP_S)

    return op(name=f"marked{number}", ins={"start": In(Nothing)})(marked)


def in_a_row(name: str, first: Any, steps: int, one: Callable[[int], Any]) -> Any:
    """Return a job; its first op is not counted."""

    def written() -> None:
        last = first()
        for number in range(steps):
            last = one(number)(start=last)

    return job(name=name, executor_def=in_process_executor)(written)


def definitions(steps: int) -> Definitions:
    first, noop = op(name="first")(_noop), op(name="noop", ins={"start": In(Nothing)})(_noop)

    def step(number: int) -> Any:
        return noop.alias(f"s{number}")

    return Definitions(
        jobs=[
            in_a_row("one", first, 1, step),
            in_a_row("steps", first, steps, step),
            in_a_row("marks", first, steps, _marking),
        ]
    )


class System:
    """Its processes, and how to speak to them."""

    def __init__(self, told: Given, stack: ExitStack) -> None:
        self.told, self.stack, self.port = told, stack, str(free_port())
        (told.folder / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        self.process = self.start()
        self.where: Any = None

    def start(self) -> Popen[bytes]:
        command = [str(PROGRAM), "dev", "-m", "bench.peers.dagster", "-h", "127.0.0.1", "-p", self.port]
        environment = {"DAGSTER_HOME": str(self.told.folder), "PYTHONPATH": str(ROOT)}
        environment |= {STEPS: str(self.told.size), MARKS: str(self.told.marks)}
        return self.stack.enter_context(process(command, self.told, **environment))

    def ask(self, query: str, **variables: Any) -> Any:
        url = f"http://127.0.0.1:{self.port}/graphql"
        return ask("POST", url, {"query": query, "variables": variables})["data"]

    def is_there(self) -> bool:
        try:
            found = self.ask(WHERE)["repositoriesOrError"].get("nodes")
        except OSError:
            return False
        self.where = found and {
            "repositoryName": found[0]["name"],
            "repositoryLocationName": found[0]["location"]["name"],
        }
        return bool(found)

    def launch(self, name: str) -> str:
        given = {"selector": {**self.where, "jobName": name}, "runConfigData": {}}
        return str(self.ask(LAUNCH, given=given)["launchRun"]["run"]["runId"])

    def run(self, name: str) -> None:
        started = self.launch(name)

        def ended() -> bool:
            status = self.ask(STATUS, id=started)["runOrError"]["status"]
            assert status not in ("FAILURE", "CANCELED"), status
            return bool(status == "SUCCESS")

        until(ended, every=0.05)


@contextmanager
def running(told: Given) -> Iterator[System]:
    with ExitStack() as stack:
        system = System(told, stack)
        until(system.is_there, every=0.1)
        yield system


def measured(told: Given) -> Seen:
    begun = time.perf_counter()
    with running(told) as system:
        if told.workload == "W6":
            system.launch("marks")
            return killed(told, system.process, system.start, patience=PATIENCE_S)
        system.run("one")
        match told.workload:
            case "W1":
                return rounds(told, lambda: {"seconds": seconds(lambda: system.run("steps"))})
            case "W4":
                return rounds(told, lambda: {"times": [seconds(lambda: system.run("one")) for _ in range(told.size)]})
            case _:
                return {"seconds": time.perf_counter() - begun}


ABSENT = {"W2": "not measured: its mapped ops run one after another", "W3": "not measured: each run is a process"}

if __name__ == "__main__":
    measure(given(), dict.fromkeys(("W1", "W4", "W5", "W6"), measured), ABSENT)
elif STEPS in os.environ:
    defs = definitions(int(os.environ[STEPS]))
