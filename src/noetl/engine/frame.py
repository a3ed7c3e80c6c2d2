"""What surrounds a task: its names, its inputs, its settings, and the writes it makes.

A frame is the data of one pipeline; which task comes next is decided by `pipeline`. Inside a workbook task the frame holds
only `input`, `workload`, `keychain` and `ctx`. Tested in tests/unit/engine/test_pipeline_names.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from noetl.dsl.playbook import Assign, Task, Value
from noetl.dsl.scopes import SCOPES
from noetl.engine.memory import Held, Memory
from noetl.engine.render import Names, Renderer, RenderError
from noetl.engine.run_info import RunInfo, Scopes
from noetl.engine.sinks import sink_id
from noetl.engine.waits import SUSPENDING
from noetl.engine.writes import merge, put
from noetl.expr import Result
from noetl.model.outcome import TaskError

_SECRET: Final = "`{target}`: a secret of a credential must not be written to the state; name the credential with `auth` where it is used"
_READ_ONLY: Final = "a workbook task must not write `{target}`: set it where the task is called"


class Frame:
    """The data of one pipeline."""

    def __init__(self, tasks: tuple[Task, ...], scopes: Scopes, info: RunInfo, memory: Memory) -> None:
        self.tasks = tasks
        self.scopes = scopes
        self.info = info
        self.memory = memory
        self.ctx = dict(scopes.ctx)
        for key, value in memory.writes.items():
            put(self.ctx, key, value)
        self._views = scopes.views()
        self._labels = {label: Result(held.value) for label, held in memory.results.items()}
        if tasks:
            self.at_task(memory.counter)

    def at_task(self, counter: int) -> None:
        """Move the program counter to a task."""
        self.memory.counter = counter
        self.task = self.tasks[counter]
        self.settings: Mapping[str, Any] = self.info.settings  # of the task, by layering
        if self.task.spec:
            self.settings = merge(self.settings, {name: value.data for name, value in self.task.spec.items()})
        self._key: str | None = None

    def keep(self, held: Held) -> None:
        """Remember the result of the task under its label."""
        label = self.task.label
        self.memory.results[label] = held
        self._labels[label] = Result(held.value)

    @property
    def key(self) -> str:
        """The idempotency key of the task's visit."""
        found = self._key
        if found is None:
            task = self.task
            found = self._key = self.info.key(task.label, self.memory.visits.get(task.label, 1), sink_id(task))
        return found

    def visit(self) -> None:
        """Count one more visit of the task, which has a key of its own."""
        label = self.task.label
        self.memory.visits[label] = self.memory.visits.get(label, 0) + 1
        self._key = None

    def setting(self, name: str) -> Any:
        """Give one setting of the task."""
        return self.settings.get(name)

    def timeout_ms(self, renderer: Renderer) -> float | None:
        """Give how long one attempt may take."""
        found: Any = self.task.timeout_ms.data if self.task.timeout_ms is not None else None
        scale = 1.0
        if found is None:
            own = self.task.spec.get("timeout")
            found, scale = (own.data if own is not None else None), 1000.0
            if isinstance(found, Mapping):
                found = found.get("total")
        if found is None:
            if self.task.kind in SUSPENDING or self.task.kind == "workbook":  # what it calls has a limit of its own
                return None
            found, scale = self._default_timeout(), 1.0
        found = renderer.value(found, "timeout_ms")
        if found is None:
            return None
        try:
            return float(found) * scale
        except (TypeError, ValueError):
            raise RenderError("timeout_ms", f"{found!r} is no number") from None

    def _default_timeout(self) -> Any:
        """Give the time-out that the settings name for such a task; a write may have one of its own."""
        timeouts = self.setting("timeouts")
        if timeouts is None or not isinstance(timeouts, Mapping):
            return None
        own = timeouts.get("sink_default_ms") if sink_id(self.task) is not None else None
        return timeouts.get("tool_default_ms") if own is None else own

    def renderer(self, at: int) -> Renderer:
        """Give what renders the task's values now."""
        strict = self.setting("strict_templates") is not False
        return Renderer(self._names, self.key, at, self.scopes.statuses, strict)

    def _names(self) -> Names:
        memory = self.memory
        pipeline = {
            "_prev": Result(memory.prev.value if memory.prev is not None else None),
            "_task": self.task.label,
            "_attempt": memory.attempt,
            "_idempotency_key": self.key,
            "step": memory.step,
        }
        return self._names_over(self.ctx, memory.iter, pipeline, self._labels)

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
            "job": scopes.job or {"uuid": self.info.execution_id},
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
        return Names(fixed | own, (labels, bare, ctx, iteration, self._views, scopes.workload), own)

    def inputs(self, renderer: Renderer) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give `input` of the task, and the task's own part of it."""
        whole = dict(self.scopes.args if self.scopes.call is None else self.scopes.call)
        if self.info.input:
            whole |= self.step_input(renderer.at)
        if not self.task.input:
            return whole, {}
        own = renderer.over(input=whole).values(self.task.input, "input")
        return {**whole, **own}, own

    def given(self) -> Iterator[Value]:
        """Give the values that `input` is made of, as they are written."""
        yield from self.info.input.values()
        yield from self.task.input.values()

    def step_input(self, at: int) -> dict[str, Any]:
        """Render the step's own `input`: over what was there when the run began, so every task sees the same."""
        if not self.info.input:
            return {}
        scopes, strict = self.scopes, self.setting("strict_templates") is not False
        names = partial(self._names_over, scopes.ctx, scopes.iter, {"step": {}}, {})
        return Renderer(names, self.info.key("input"), at, scopes.statuses, strict).values(self.info.input, "input")

    def context(self, whole: Mapping[str, Any]) -> dict[str, Any]:
        """Give everything in scope but secrets, for code that asks for it."""
        memory, scopes = self.memory, self.scopes
        return {
            **{name: view.plain for name, view in self._views.items()},
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
            "job": scopes.job or {"uuid": self.info.execution_id},
        }

    def holds_secret(self, value: Any) -> bool:
        """Tell whether a resolved secret is in a value."""
        return self.info.is_secret is not None and self.info.is_secret(value)

    def write(self, sets: tuple[Assign, ...], renderer: Renderer) -> TaskError | None:
        """Apply writes together: every value is computed from what was there before."""
        try:
            values = [(assign, renderer.assigned(assign)) for assign in sets]
        except RenderError as error:
            return TaskError("template", str(error))
        for assign, value in values:
            if assign.scope not in ("step", "iter") and self.holds_secret(value):
                return TaskError("template", _SECRET.format(target=assign.target))
            if assign.scope == "step":
                put(self.memory.step, assign.key, value)
            elif self.info.caller:
                return TaskError("template", _READ_ONLY.format(target=assign.target))
            elif assign.scope == "iter":
                put(self.memory.iter, assign.key, value)
            else:
                self.memory.writes.pop(assign.key, None)  # the order of writing is the order of applying
                self.memory.writes[assign.key] = value
                put(self.ctx, assign.key, value)
        return None
