"""Inputs of a pipeline: the data of its templates, and its run.

Tested in tests/unit/engine/pipeline/test_pipeline.py and test_pipeline_names.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.tree.playbook import Playbook, Step, Task, Value, default_label
from noetl.engine.tasks.task_plan import Layered, TaskPlan, plans_of
from noetl.expr import Result
from noetl.expr.runtime.result_views import View
from noetl.model.ids import idempotency_key, run_key
from noetl.model.refs import expanded
from noetl.model.work import WorkItem

_SENT = itemgetter("workload", "ctx", "args", "steps", "statuses", "job")  # in every work item, see `work.scopes`


class Scopes(Struct, frozen=True):
    """The data of one run; `steps` are results, plain or views that load."""

    workload: Mapping[str, Any] = {}
    ctx: Mapping[str, Any] = {}
    args: Mapping[str, Any] = {}
    steps: Mapping[str, Any] = {}
    statuses: Mapping[str, str] = {}
    iter: Mapping[str, Any] = {}
    keychain: Mapping[str, Any] = {}
    job: Mapping[str, Any] = {}
    call: Mapping[str, Any] | None = None  # inside a workbook task: the `input` of the call

    @staticmethod
    def of(data: Mapping[str, Any]) -> Scopes:
        """Return the scopes of a work item."""
        workload, ctx, args, steps, statuses, job = _SENT(data)
        steps = {name: expanded(result) for name, result in steps.items()}
        return Scopes(workload, ctx, args, steps, statuses, data.get("iter") or {}, {}, job)

    def item(self, iterator: str, value: Any, index: int, total: int | None) -> Scopes:
        """Return the scopes of one item of a loop; the `total` of a cursor is unknown."""
        last = None if total is None else index == total - 1
        first = index == 0
        iteration = {
            **self.iter, "index": index, "total": total, "first": first, "last": last,
            "_index": index, "_total": total, "_first": first, "_last": last, iterator: value,
        }  # fmt: skip
        return replace(self, iter=iteration)

    def views(self) -> dict[str, View]:
        """Return the results of steps as templates see them."""
        return {
            name: value if isinstance(value, View) else Result(value, default_label(name))
            for name, value in self.steps.items()
        }


class RunInfo(Struct, frozen=True):
    """Which run this is, and its settings."""

    execution_id: str
    step: str
    number: int = 1
    index: int | None = None  # of a loop's item
    iterator: str = ""  # name of the item in a loop
    item_key: str | None = None  # of a cursor's row; replaces the index
    seed: str = ""
    settings: Mapping[str, Any] = {}  # layered: configuration, executor, step, loop
    kinds: Kinds = {}
    workbook: tuple[Task, ...] = ()
    patched: Mapping[str, Task] = {}  # workbook tasks that a retried dead letter patches, by the place of the call
    input: Mapping[str, Value] = {}  # the step's own
    caller: str = ""  # inside a workbook task: the key of the call
    place: str = ""  # inside a workbook task: the labels of the calls, with slashes
    is_secret: Callable[[Any], bool] | None = None  # whether a value contains a resolved secret
    plans: tuple[TaskPlan, ...] = ()  # of the step's tasks, if computed before

    @property
    def root(self) -> str:
        """Prefix of the idempotency keys of its tasks."""
        item = self.index if self.item_key is None else self.item_key
        return self.caller or run_key(self.execution_id, self.step, self.number, item)

    def key(self, label: str) -> str:
        """Return the idempotency key of a task's first visit."""
        return idempotency_key(self.root, label)


def info_for(playbook: Playbook, kinds: Kinds, is_secret: Callable[[Any], bool] | None = None) -> RunInfo:
    """Return what all runs of a playbook share."""
    return RunInfo("", "", kinds=kinds, workbook=playbook.workbook, is_secret=is_secret)


def for_step(info: RunInfo, step: Step, layered: Layered) -> RunInfo:
    """Return what all runs of a step share; `layered` are the settings around it."""
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
    """Return the info of a work item's run; an item of a loop adds its index."""
    return replace(info, execution_id=work.execution_id, number=work.number, seed=work.work_id)
