"""The plan of a playbook: what is known before it runs, once per version.

Tested in tests/unit/engine/decision/test_slice.py and test_join.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final

from noetl.dsl.analysis.net import Net, build, closure
from noetl.dsl.tree.playbook import Playbook, Step, Task, Value
from noetl.engine.plan.step_plan import Paths, StepPlan, part, roots, router_reads
from noetl.engine.state.writes import merge, plain
from noetl.expr import Template, TemplateError, compile_template
from noetl.model.work import PLAYBOOK_LIMITS, WORK_LIMITS
from noetl.trace_context import TRACING

MAX_STEP_RUNS: Final = 10_000  # of one step; arcs alone lead a step that is in no cycle to a handful
_MENTIONS = re.compile(r"\b(context|input_data)\b")
_ASKS = re.compile(r"\b(done|ok|fail)\s*\(")


class _StepPlans(dict[str, StepPlan]):
    def __init__(self, steps: Mapping[str, Step], compute: Callable[[Step], StepPlan]) -> None:
        super().__init__()
        self._steps, self._compute = steps, compute

    def __missing__(self, name: str) -> StepPlan:
        step_plan = self[name] = self._compute(self._steps[name])
        return step_plan


@dataclass(frozen=True, eq=False)
class Plan:
    """A playbook that is ready to run."""

    playbook: Playbook
    playbook_hash: str
    net: Net
    defaults: Mapping[str, Any] = field(default_factory=dict)
    _avoiding: dict[int, tuple[int, ...]] = field(default_factory=dict, repr=False)
    _settings: dict[tuple[str, str | None], Any] = field(default_factory=dict, repr=False)
    _policies: dict[tuple[str, str | None], Any] = field(default_factory=dict, repr=False)
    lacks: str | None = None  # why it cannot start here: what `executor.requires` names and this server lacks

    @cached_property
    def steps(self) -> Mapping[str, StepPlan]:
        """The plan of each step, by name."""
        return _StepPlans({step.name: step for step in self.net.steps}, self._step_plan)

    @cached_property
    def entry(self) -> str:
        return self.net.steps[self.net.entry or 0].name

    @cached_property
    def final(self) -> str | None:
        return None if self.net.final is None else self.net.steps[self.net.final].name

    @cached_property
    def has_gates(self) -> bool:
        return any(step.admit is not None for step in self.net.steps)

    @cached_property
    def max_parallel(self) -> int | None:
        """How many step-runs may be in flight; None for no bound."""
        bound = self.setting("max_parallel")
        return bound if isinstance(bound, int) else None

    @cached_property
    def weight(self) -> int:
        """Share of the playbook in the workers while work of several playbooks waits."""
        weight = self.setting("weight")
        return weight if isinstance(weight, int) and not isinstance(weight, bool) else 1

    @cached_property
    def has_limits(self) -> bool:
        """Whether `concurrency`, `rate` or the server may limit its executions."""
        own = self.setting("concurrency") is not None or self.setting("rate") is not None
        return own or bool(self.defaults.get(PLAYBOOK_LIMITS))

    def playbook_limit(self, path: str) -> dict[str, Any] | None:
        """Return the first limit of the server whose pattern matches a path."""
        for pattern, most in (self.defaults.get(PLAYBOOK_LIMITS) or {}).items():
            if fnmatchcase(path, pattern):
                return {"group": f"playbook {pattern}", "limit": most}
        return None

    @cached_property
    def fixed_workload(self) -> Mapping[str, Any] | None:
        """The workload before the payload is merged; None if it has templates or a schema."""
        workload = {key: value.data for key, value in self.playbook.workload.items()}
        if isinstance(self.playbook.executor.setting("workload_schema"), dict | bool):
            return None
        return None if any(map(template, _texts(workload))) else plain(workload)

    def step(self, name: str) -> Step:
        return self.steps[name].step

    def is_work(self, name: str) -> bool:
        """Return whether a run of the step is one work item; loops are issued in ranges."""
        return self.steps[name].is_work

    def reads(self, step: Step) -> Paths:
        """Return the paths that the worker's templates of a step may read."""
        return self.steps[step.name].reads

    def reads_all(self, step: Step) -> bool:
        """Return whether a step's code reads the whole context."""
        return self.steps[step.name].reads_all

    def _step_plan(self, step: Step) -> StepPlan:
        is_work = bool(step.tasks) and step.loop is None
        deadline = self.policy(step, "lifecycle", "deadline_s")
        allowed = (_data(step.spec.get("timeout_s")), self.policy(step, "lifecycle", "timeout_s"))
        texts = list(_texts(_step_data(step, self.playbook)))
        reads = self._keychain_reads.union(reads_of(texts))
        greedy = any(map(_is_greedy, step.tasks))
        asks = any(map(_ASKS.search, texts))
        return StepPlan(
            step=step,
            join=step.join,
            is_work=is_work,
            arcs=tuple((index, arc) for index, arc in enumerate(step.arcs) if arc.step in self.net.index),
            router_reads=router_reads(step),
            when_limit=self.setting("evaluate_when_timeout_ms", step),
            compensate=step.compensate if step.compensate in self.net.index else None,
            reads=reads,
            reads_all=greedy,
            asks_for_steps=asks,
            sees=bool(reads) or greedy or asks,
            roots=roots(reads),
            ctx=part(reads, "ctx", "vars"),
            workload=part(reads, "workload"),
            requires=self._requires(step),
            kinds=self._limited_kinds(step),
            places=self._places(step),
            deadline=deadline,
            timeouts=tuple(seconds for seconds in allowed if seconds is not None),
            max_runs=self._max_runs(step),
        )

    def setting(self, name: str, step: Step | None = None, default: Any = None) -> Any:
        """Return a setting by layering; inner scalars win, maps merge."""
        key = (name, None if step is None or _has_no_settings(step) else step.name)
        if key in self._settings:
            value = self._settings[key]
        else:
            value = self._settings[key] = self._layered(name, step)
        return default if value is None else value

    def _layered(self, name: str, step: Step | None) -> Any:
        value = self.defaults.get(name)
        loop = step.loop.spec if step is not None and step.loop is not None else {}
        for layer in (self.playbook.executor.spec, step.spec if step is not None else {}, loop):
            own = layer[name].data if name in layer else None
            if own is not None:
                value = merge(value, own) if isinstance(value, Mapping) and isinstance(own, Mapping) else own
        return value

    @cached_property
    def _keychain_reads(self) -> Paths:
        """Paths that the keychain reads: the worker renders it for any step that uses it."""
        data = [list(_values(entry.fields)) for entry in self.playbook.keychain]
        return frozenset(path for path in reads_of(data) if path[0] != "keychain")

    def _requires(self, step: Step) -> tuple[str, ...]:
        specs = [self.setting("requires", step), *(_data(task.spec.get("requires")) for task in step.tasks)]
        return tuple(
            sorted({str(tag) for spec in specs if isinstance(spec, Mapping) for tag in spec.get("tags") or ()})
        )

    @cached_property
    def tracing(self) -> Mapping[str, Any] | None:
        """Settings of traces, if the server traces."""
        return self.defaults.get(TRACING)

    @cached_property
    def work_limits(self) -> Mapping[str, int]:
        """How much work the server leases at once, by `pool gpu` and `kind http`."""
        return self.defaults.get(WORK_LIMITS) or {}

    def _limited_kinds(self, step: Step) -> tuple[str, ...]:
        if not self.work_limits:
            return ()
        book = {task.label: task.kind for task in self.playbook.workbook}
        called = [book.get(str(_data(task.fields.get("task")) or task.label), "") for task in step.tasks]
        cursor = step.loop.cursor if step.loop is not None else None
        kinds = [*(task.kind for task in step.tasks), *called, str(_data((cursor or {}).get("kind")))]
        return tuple(sorted({name for kind in kinds if (name := f"kind {kind}") in self.work_limits}))

    def _places(self, step: Step) -> bool:
        names = ("pool", "priority")
        own = any(name in task.spec for task in step.tasks for name in names)
        return own or any(self.setting(name, step) is not None for name in names)

    def _max_runs(self, step: Step) -> int:
        most = (self.setting("limits", step) or {}).get("max_step_runs")
        return most if isinstance(most, int) else MAX_STEP_RUNS

    def policy(self, step: Step, *path: str) -> Any:
        """Look a policy up by layering: loop, step, executor, configuration."""
        key = (".".join(path), None if _has_no_settings(step) else step.name)
        if key not in self._policies:
            self._policies[key] = self._policy(step, path)
        return self._policies[key]

    def _policy(self, step: Step, path: tuple[str, ...]) -> Any:
        layers = (step.loop.spec if step.loop else {}, step.spec, self.playbook.executor.spec)
        for policy in (*(_data(layer.get("policy")) for layer in layers), self.defaults.get("policy")):
            value = policy
            for key in path:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None:
                return value
        return None

    def reaches(self, source: str, target: str, router: str) -> bool:
        """Return whether a token at `source` can reach `target` without passing `router`."""
        avoided = self.net.index[router]
        reach = self._avoiding.get(avoided)
        if reach is None:
            reach = self._avoiding[avoided] = _reach_avoiding(self.net, avoided)
        return bool(reach[self.net.index[source]] >> self.net.index[target] & 1)

    def reaches_around(self, source: str, target: str, ends: frozenset[str]) -> bool:
        """Return whether a token at `source` can reach `target` without passing `ends`."""
        goal, closed = self.net.index[target], {self.net.index[name] for name in ends}
        seen, stack = set(closed), [self.net.index[source]]
        while stack:
            for edge in self.net.out[stack.pop()]:
                if edge.target == goal:
                    return target not in ends
                if edge.target not in seen:
                    seen.add(edge.target)
                    stack.append(edge.target)
        return False


def plan(
    playbook: Playbook, playbook_hash: str, defaults: Mapping[str, Any] | None = None, lacks: str | None = None
) -> Plan:
    """Make the plan of a playbook."""
    return Plan(playbook, playbook_hash, build(playbook), defaults or {}, lacks=lacks)


def _has_no_settings(step: Step) -> bool:
    return not step.spec and step.loop is None


def _data(value: Value | None) -> Any:
    return None if value is None else value.data


def _is_greedy(task: Task) -> bool:
    return task.kind in ("python", "script") and any(
        (name != "code_b64" and _MENTIONS.search(text)) or name == "code_b64"
        for name, value in task.fields.items()
        for text in _texts(value.data)
    )


def template(text: str) -> Template | None:
    """Return the compiled template of a text; None if it is plain or does not parse."""
    if "{" not in text:
        return None
    try:
        compiled = compile_template(text)
    except TemplateError:
        return None
    return None if compiled.kind == "plain" else compiled


def _reach_avoiding(net: Net, router: int) -> tuple[int, ...]:
    followers = [[edge.target for edge in edges] if number != router else [] for number, edges in enumerate(net.out)]
    return closure(followers)[1]


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _texts(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _texts(value)


def _values(*groups: Mapping[str, Value]) -> Iterator[Any]:
    for group in groups:
        for value in group.values():
            yield value.data


def _step_data(step: Step, playbook: Playbook) -> list[Any]:
    tasks = list(step.tasks)
    called = {task.fields["task"].data for task in tasks if task.kind == "workbook" and "task" in task.fields}
    tasks += [task for task in playbook.workbook if task.label in called]
    data: list[Any] = list(_values(step.input, *((step.loop.cursor or {},) if step.loop else ())))
    if step.loop is not None and step.loop.item_timeout_ms is not None:
        data.append(step.loop.item_timeout_ms.data)
    for task in tasks:
        data += _values(task.fields, task.input, task.spec)
        data += [value.data for value in (task.auth, task.timeout_ms) if value is not None]
        data += [assign.value.data for assign in task.sets]
        for rule in task.rules or ():
            then = rule.then
            parts = (rule.when, then.attempts, then.delay, then.backoff, then.max_delay, then.jitter)
            data += [value.data for value in parts if value is not None]
            data += [assign.value.data for assign in then.sets]
    return data


def reads_of(data: Any) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths that templates in plain data read."""
    for text in _texts(data):
        compiled = template(text)
        if compiled is not None:
            for read in compiled.reads:
                yield read.path
