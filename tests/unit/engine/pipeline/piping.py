"""Helpers for tests of pipelines: tasks from YAML, scripted outcomes.

run = Run(tasks("- a: {kind: noop}"), outcomes={"a": [ok(1)]})
run.result()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.playbook import Playbook, Task
from noetl.engine.pipeline.pipeline import advance, restore, resume, start
from noetl.engine.tasks.actions import Finished, Next, RunTask, Suspend
from noetl.engine.tasks.run_info import RunInfo, Scopes
from noetl.model.messages import Record
from noetl.model.outcome import Outcome, ok
from noetl.model.refs import expanded
from noetl.wiring.embedded import language_kinds

START = 1_700_000_000_000
_HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: t, path: t}\n"


def playbook(text: str) -> Playbook:
    """Return the playbook of a text without its head."""
    return normalize(parse(_HEAD + text))


def tasks(text: str) -> tuple[Task, ...]:
    """Return the pipeline of a YAML list."""
    lines = "\n".join("      " + line for line in text.strip("\n").splitlines())
    return playbook(f"workflow:\n  - step: s\n    tool:\n{lines}\n").workflow[0].tasks


def info(**more: Any) -> RunInfo:
    return RunInfo(**{"execution_id": "42", "step": "s", "seed": "seed", "kinds": language_kinds(), **more})


class Run:
    """Drives a pipeline with outcomes by label; the last one repeats, `tick` is time."""

    def __init__(
        self,
        pipeline: tuple[Task, ...],
        outcomes: Mapping[str, list[Outcome]] | None = None,
        scopes: Scopes | None = None,
        run_info: RunInfo | None = None,
        tick: int = 10,
        carried: bool = False,
    ) -> None:
        self.tasks = pipeline
        self.outcomes = {label: list(found) for label, found in (outcomes or {}).items()}
        self.scopes = scopes or Scopes()
        self.info = run_info or info()
        self.now, self.tick, self.carried = START, tick, carried
        self.pipeline = start(self.tasks, self.scopes, self.info)
        self.ran: list[RunTask] = []
        self.waits: list[Suspend] = []
        self.records: list[Record] = []

    def carry(self) -> None:
        """Go on with a pipeline restored from the snapshot, as after a crash."""
        self.records += self.pipeline.records()
        if self.carried:
            self.pipeline = restore(self.tasks, self.pipeline.snapshot(), self.scopes, self.info)

    def outcome(self, task: RunTask) -> Outcome:
        found = self.outcomes.get(task.label.rsplit("/", 1)[-1]) or [ok(f"{task.label} done")]
        return found.pop(0) if len(found) > 1 else found[0]

    def step(self, action: Next) -> Next:
        self.carry()
        self.now += self.tick
        if isinstance(action, RunTask):
            self.ran.append(action)
            return resume(self.pipeline, self.outcome(action), self.now)
        assert isinstance(action, Suspend)
        self.waits.append(action)
        assert action.until is not None, "only time passes here"
        self.now = max(self.now, action.until)
        return advance(self.pipeline, self.now)

    def result(self, most: int = 10_000) -> Finished:
        action = advance(self.pipeline, self.now)
        for _ in range(most):
            if isinstance(action, Finished):
                self.records += self.pipeline.records()
                return msgspec.structs.replace(action, result=expanded(action.result))
            action = self.step(action)
        raise AssertionError("the pipeline does not end")

    @property
    def labels(self) -> list[str]:
        return [task.label for task in self.ran]

    @property
    def events(self) -> list[str]:
        return [record.event_type for record in self.records]
