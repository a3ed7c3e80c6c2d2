"""The scope of a task: its names, inputs and settings, and its writes.

A workbook task sees only `input`, `workload`, `keychain` and `ctx`. Tested in tests/unit/engine/pipeline/test_names.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import isfinite, nan
from typing import Any, Final

from noetl.dsl.analysis.scopes import SCOPES
from noetl.dsl.tree.playbook import Assign, Task, Value
from noetl.engine.state.writes import put
from noetl.engine.tasks.memory import Memory
from noetl.engine.tasks.render import Names, Renderer, RenderError, reads_secret
from noetl.engine.tasks.run_info import RunInfo, Scopes
from noetl.engine.tasks.task_plan import Layered, plans_of
from noetl.expr import Result
from noetl.expr.runtime.result_views import View
from noetl.model.ids import idempotency_key, job
from noetl.model.messages import Record
from noetl.model.outcome import TaskError

_SECRET: Final = (
    "`{target}`: a secret of {owner} must not be written to the state; name the credential with `auth` where it is used"
)
_MOST_MS: Final = 366 * 86_400_000.0 * 10  # of a time-out: ten years
_READ_ONLY: Final = "a workbook task must not write `{target}`: set it where the task is called"

Skipped = list[dict[str, str]]  # of writes that were left out: key, reason


class Frame:
    """The data of one pipeline, which appends its events to `records`."""

    _ctx: dict[str, Any] | None = None
    _views: dict[str, View] | None = None

    def __init__(
        self,
        tasks: tuple[Task, ...],
        scopes: Scopes,
        info: RunInfo,
        memory: Memory,
        records: list[Record] | None = None,
    ) -> None:
        self.tasks = tasks
        self.scopes = scopes
        self.info = info
        self.memory = memory
        self._records = [] if records is None else records
        self._plans = info.plans or plans_of(tasks, Layered(info.settings))
        self._root = info.root
        if tasks:
            self.at_task(memory.counter)

    def at_task(self, counter: int) -> None:
        """Move the program counter to a task."""
        memory, info, plan = self.memory, self.info, self._plans[counter]
        memory.move_to(counter)
        self.plan = plan
        self.task = task = plan.task
        label = task.label
        self.named = info.place + label
        # An item records only failures: the loop writes one event for each item that succeeds.
        self.is_quiet = info.index is not None and not plan.layered.is_durable
        self.key = idempotency_key(self._root, label, memory.visits.get(label, 1), plan.sink)  # of this visit

    def visit(self) -> None:
        """Count one more visit of the task; every visit has its own idempotency key."""
        label = self.task.label
        visit = self.memory.count_visit(label)
        if visit > 1:
            self.key = idempotency_key(self._root, label, visit, self.plan.sink)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the task, by layering."""
        return self.plan.layered.given

    @property
    def ctx(self) -> dict[str, Any]:
        """`ctx` as the run sees it, with its own writes."""
        ctx = self._ctx
        if ctx is None:
            ctx = self._ctx = dict(self.scopes.ctx)
            for key, value in self.memory.writes.items():
                put(ctx, key, value)
        return ctx

    @property
    def views(self) -> dict[str, View]:
        """The results of steps, as templates see them."""
        views = self._views
        if views is None:
            views = self._views = self.scopes.views()
        return views

    def timeout_ms(self, renderer: Renderer) -> float | None:
        """Return the time-out of one attempt."""
        plan = self.plan
        limit = renderer.value(plan.timeout, "timeout_ms")
        if limit is None:
            return None
        try:
            found = float(limit) * plan.timeout_scale
        except (TypeError, ValueError, OverflowError):
            found = nan
        if not isfinite(found):
            raise RenderError("timeout_ms", f"{str(limit)[:80]!r} is no number of milliseconds")
        return min(found, _MOST_MS)

    def renderer(self, at: int) -> Renderer:
        """Return the renderer of the task's values."""
        return Renderer(self._names, self.key, at, self.scopes.statuses, self.plan.layered.is_strict)

    def _names(self) -> Names:
        memory = self.memory
        pipeline = {
            "_prev": Result(memory.prev.value if memory.prev is not None else None),
            "_task": self.task.label,
            "_attempt": memory.attempt,
            "_idempotency_key": self.key,
            "step": memory.step,
        }
        labels = {label: Result(held.value) for label, held in memory.results.items()}
        return self._names_over(self.ctx, memory.iter, pipeline, labels)

    def _names_over(
        self,
        ctx: Mapping[str, Any],
        iteration: Mapping[str, Any],
        more: Mapping[str, Any],
        labels: Mapping[str, Any],
    ) -> Names:
        scopes, call = self.scopes, self.scopes.call
        fixed: dict[str, Any] = {
            "workload": scopes.workload,
            "keychain": scopes.keychain,
            "ctx": ctx,
            "vars": ctx,
            "execution_id": self.info.execution_id,
            "job": scopes.job or job(self.info.execution_id),
            "input": scopes.args if call is None else call,
            **more,
        }
        if call is None:
            fixed |= {"args": scopes.args, "iter": iteration}
        if call is None and self.info.index is not None:
            fixed |= {"loop_index": self.info.index, "_index": self.info.index}
        item = self.info.iterator
        own = {item: iteration[item]} if call is None and item in SCOPES and item in iteration else {}
        bare = scopes.args if call is None else call
        return Names(fixed | own, (labels, bare, ctx, iteration, self.views, scopes.workload), own)

    def inputs(self, renderer: Renderer) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return `input` of the task, and the task's own part of it."""
        whole = self.surrounding(renderer.at)
        if not self.task.input:
            return whole, {}
        own = renderer.over(input=whole).values(self.task.input, "input")
        if self.scopes.call is not None:  # in a called task, a null is a default that the caller fills
            own |= {
                name: whole[name] for name, value in self.task.input.items() if value.data is None and name in whole
            }
        return {**whole, **own}, own

    def surrounding(self, at: int) -> dict[str, Any]:
        """Return `input` without the task's own part."""
        scopes = self.scopes
        whole = dict(scopes.args if scopes.call is None else scopes.call)
        if self.info.input:
            whole |= self.step_input(at)
        return whole

    def payload_values(self) -> Iterator[Value]:
        """Yield the values that a child playbook gets, as written."""
        yield from self.info.input.values()
        yield from self.task.input.values()
        if "payload" in self.task.fields:
            yield self.task.fields["payload"]

    def step_input(self, at: int) -> dict[str, Any]:
        """Render the step's `input` over the state at the start of the run."""
        if not self.info.input:
            return {}
        scopes, strict = self.scopes, self.plan.layered.is_strict
        names = partial(self._names_over, scopes.ctx, scopes.iter, {"step": {}}, {})
        return Renderer(names, self.info.key("input"), at, scopes.statuses, strict).values(self.info.input, "input")

    def context(self, whole: Mapping[str, Any]) -> dict[str, Any]:
        """Return everything in scope except secrets, for code that reads it."""
        memory, scopes = self.memory, self.scopes
        return {
            **{name: view.plain for name, view in self.views.items()},
            **{label: held.value for label, held in memory.results.items()},
            "workload": scopes.workload,
            "ctx": dict(self.ctx),
            "vars": dict(self.ctx),
            "args": scopes.args,
            "input": whole,
            "iter": dict(memory.iter),
            "step": dict(memory.step),
            "_prev": memory.prev.value if memory.prev is not None else None,
            "_task": self.task.label,
            "_attempt": memory.attempt,
            "_idempotency_key": self.key,
            "execution_id": self.info.execution_id,
            "job": scopes.job or job(self.info.execution_id),
        }

    def holds_secret(self, value: Any) -> bool:
        """Return whether a value contains a resolved secret."""
        return self.info.is_secret is not None and self.info.is_secret(value)

    def write(self, sets: tuple[Assign, ...], renderer: Renderer, *, failed: bool = False) -> TaskError | Skipped:
        """Apply writes together: every value is computed from the state before them.

        After a failure, a value that cannot be read is skipped: returns such keys with the reason.
        """
        values: list[tuple[Assign, Any]] = []
        skipped: list[dict[str, str]] = []
        for assign in sets:
            if reads_secret(assign.value.data):
                return TaskError("template", _SECRET.format(target=assign.target, owner="`keychain`"))
            try:
                values.append((assign, renderer.value(assign.value.data, f"set: {assign.target}")))
            except RenderError as error:
                if not failed:
                    return TaskError("template", str(error))
                skipped.append({"key": assign.target, "reason": str(error)})
        for assign, value in values:
            if assign.scope not in ("step", "iter") and self.holds_secret(value):
                return TaskError("template", _SECRET.format(target=assign.target, owner="a credential"))
            if assign.scope == "step":
                put(self.memory.step, assign.key, value)
            elif self.info.caller:
                return TaskError("template", _READ_ONLY.format(target=assign.target))
            elif assign.scope == "iter":
                put(self.memory.iter, assign.key, value)
            else:
                self.memory.write(assign.key, value)
                put(self.ctx, assign.key, value)
        return skipped
