"""What a pipeline is given: the data its templates see, and which run of which step it is.

`Scopes` is the slice of the state that came with the work; `RunInfo` holds everything else that is fixed for the run.
Tested in tests/unit/engine/test_pipeline.py and test_pipeline_names.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from noetl.dsl.kinds import Kinds
from noetl.dsl.playbook import Playbook, Step, Task, Value
from noetl.engine.task_plan import Layered, TaskPlan, plans_of
from noetl.expr import Result
from noetl.expr.scopes import View
from noetl.model.ids import idempotency_key, run_key
from noetl.model.work import WorkItem

_SENT = itemgetter("workload", "ctx", "args", "steps", "statuses", "job")  # with every piece of work, by `slice.scopes`


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
    def of(data: Mapping[str, Any]) -> Scopes:
        """Take the slice that came with a piece of work."""
        workload, ctx, args, steps, statuses, job = _SENT(data)
        return Scopes(workload, ctx, args, steps, statuses, data.get("iter") or {}, {}, job)

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

    @property
    def root(self) -> str:
        """What the idempotency keys of its tasks begin with."""
        item = self.index if self.item_key is None else self.item_key
        return self.caller or run_key(self.execution_id, self.step, self.number, item)

    def key(self, label: str) -> str:
        """Give the idempotency key of a task when it is come to for the first time."""
        return idempotency_key(self.root, label)


def info_for(playbook: Playbook, kinds: Kinds, is_secret: Callable[[Any], bool] | None = None) -> RunInfo:
    """Gather what a worker knows of all runs of a playbook; `for_step` and `for_work` make it that of one."""
    return RunInfo("", "", kinds=kinds, workbook=playbook.workbook, is_secret=is_secret)


def for_step(info: RunInfo, step: Step, layered: Layered) -> RunInfo:
    """Give what is known of all runs of a step; `layered` are the settings around it."""
    loop = step.loop
    if step.spec or loop is not None:
        layered = layered.over(step.spec).over(loop.spec if loop is not None else {})
    return replace(
        info,
        step=step.name,
        iterator=loop.iterator if loop is not None else "",
        settings=layered.given,
        input=step.input,
        plans=plans_of(step.tasks, layered),
    )


def for_work(info: RunInfo, work: WorkItem) -> RunInfo:
    """Give what is known of the run of a piece of work; for an item of a loop, `replace(info, index=…)` does the rest."""
    return replace(info, execution_id=work.execution_id, number=work.number, seed=work.work_id)
