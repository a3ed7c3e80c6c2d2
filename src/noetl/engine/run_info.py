"""What a pipeline is given: the data its templates see, and which run of which step it is.

`Scopes` is the slice of the state that came with the work; `RunInfo` holds everything else that is fixed for the run.
Tested in tests/unit/engine/test_pipeline.py and test_pipeline_names.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from noetl.dsl.kinds import Kinds
from noetl.dsl.playbook import Playbook, Step, Task, Value
from noetl.engine.patches import patched_calls
from noetl.engine.task_plan import TaskPlan
from noetl.engine.writes import merge
from noetl.expr import Result
from noetl.expr.scopes import View
from noetl.model.ids import idempotency_key
from noetl.model.work import WorkItem


class Scopes(Struct, frozen=True):
    """The data of one run; `steps` are results, plain or views of their own (a stored result that loads itself)."""

    workload: Mapping[str, Any] = {}
    ctx: Mapping[str, Any] = {}
    args: Mapping[str, Any] = {}
    steps: Mapping[str, Any] = {}
    statuses: Mapping[str, str] = {}
    iter: Mapping[str, Any] = {}
    keychain: Mapping[str, Any] = {}
    job: Mapping[str, Any] = {}
    call: Mapping[str, Any] | None = None  # inside a workbook task: what the call gave as `input`

    @staticmethod
    def of(data: Mapping[str, Any], keychain: Mapping[str, Any] | None = None) -> Scopes:
        """Take the slice that came with a piece of work."""
        return Scopes(
            workload=data.get("workload") or {},
            ctx=data.get("ctx") or {},
            args=data.get("args") or {},
            steps=data.get("steps") or {},
            statuses=data.get("statuses") or {},
            iter=data.get("iter") or {},
            keychain=keychain or {},
            job=data.get("job") or {},
        )

    def item(self, iterator: str, value: Any, index: int, total: int | None) -> Scopes:
        """Give the scopes of one item of a loop; a cursor's `total` is not known."""
        last = None if total is None else index == total - 1
        first = index == 0
        names = {
            **self.iter, "index": index, "total": total, "first": first, "last": last,
            "_index": index, "_total": total, "_first": first, "_last": last, iterator: value,
        }  # fmt: skip
        return replace(self, iter=names)

    def views(self) -> dict[str, View]:
        """Give the results of steps as templates see them."""
        return {name: value if isinstance(value, View) else Result(value) for name, value in self.steps.items()}


class RunInfo(Struct, frozen=True):
    """Which run this is, and how the playbook wants it done."""

    execution_id: str
    step: str
    number: int = 1
    index: int | None = None  # of a loop's item
    iterator: str = ""  # the name of the item, in a loop
    item_key: str | None = None  # of a cursor's row; stands for the index
    seed: str = ""
    settings: Mapping[str, Any] = {}  # layered: configuration, executor, step, loop
    kinds: Kinds = {}
    workbook: tuple[Task, ...] = ()
    patched: Mapping[str, Task] = {}  # workbook tasks that a replay calls in another form, by the place of the call
    input: Mapping[str, Value] = {}  # the step's own
    caller: str = ""  # inside a workbook task: the key of the call
    place: str = ""  # inside a workbook task: the labels of the calls, with slashes
    is_secret: Callable[[Any], bool] | None = None  # tells whether a resolved secret is in a value
    plans: tuple[TaskPlan, ...] = ()  # of the step's tasks, where they were made before

    def key(self, label: str, visit: int = 1, sink: str | None = None) -> str:
        """Give the idempotency key of a task."""
        if self.caller:
            named = f"{self.caller}:{label}" + (f"#{visit}" if visit > 1 else "")
            return named if sink is None else f"{named}:{sink}"
        item = self.item_key if self.item_key is not None else self.index
        return idempotency_key(self.execution_id, self.step, self.number, label, visit, item, sink)


def info_for(
    playbook: Playbook,
    step: Step,
    work: WorkItem,
    kinds: Kinds,
    defaults: Mapping[str, Any] | None = None,
    is_secret: Callable[[Any], bool] | None = None,
) -> RunInfo:
    """Gather what a worker knows of a run; for an item of a loop, `replace(info, index=…)` does the rest."""
    return RunInfo(
        execution_id=work.execution_id,
        step=step.name,
        number=work.number,
        iterator=step.loop.iterator if step.loop is not None else "",
        seed=work.work_id,
        settings=settings_for(playbook, step, defaults or {}),
        kinds=kinds,
        workbook=playbook.workbook,
        patched=patched_calls(playbook, step, work.patch, kinds) if work.patch else {},
        input=step.input,
        is_secret=is_secret,
    )


def settings_for(playbook: Playbook, step: Step, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Layer the settings of a step: configuration, executor, step, loop. Inner scalars win, maps merge, lists replace."""
    found = dict(defaults)
    for layer in (playbook.executor.spec, step.spec, step.loop.spec if step.loop else {}):
        if layer:
            found = merge(found, {name: value.data for name, value in layer.items()})
    return found
