"""Names a template may read. Tested in tests/unit/dsl/analysis/test_scopes.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from noetl.dsl.analysis.templates import Role, TemplateSite
from noetl.dsl.tree.playbook import Assign, Playbook, Step, Task, Value

SCOPES: dict[str, str] = {
    "workload": "Input of the execution. Its keys can also be read without `workload.`.",
    "keychain": "Resolved credentials, on the worker only.",
    "ctx": "State of the execution. Every change is an event.",
    "vars": "Alias of `ctx`.",
    "iter": "Current iteration of the step's loop.",
    "step": "Scratch values of the current step-run.",
    "args": "Arguments that the arc bound for the step-run.",
    "input": "`args` overlaid with the inputs of the step and the task.",
    "_prev": "Result of the previous task.",
    "_task": "Label of the current task.",
    "_attempt": "Number of the current attempt, from 1.",
    "_idempotency_key": "Key that is the same for every attempt of the task.",
    "outcome": "Outcome of the task or step: status, result, error and meta.",
    "output": "Like `outcome`, with `data` for `result`.",
    "event": "Current event.",
    "execution_id": "Id of the execution, a numeric text.",
    "job": "`job.uuid` and `job.execution_id` are the id of the execution.",
}
_TASKS = "in the tasks of a step: their inputs, rules and `set`"
_AFTER_TASK = "in the rules and the `set` of a task, in a step's `set` and on its arcs"
WHERE: dict[str, str] = {
    "workload": "everywhere except in `workload` itself",
    "keychain": "in the tasks of a step and in its `input`, on the worker",
    "ctx": "everywhere except in `workload`, `executor` and `keychain`",
    "iter": "in the tasks and the `input` of a step with a `loop`",
    "step": f"{_TASKS}, and in the step's `set` and arcs",
    "args": "in steps, their tasks and their arcs",
    "input": "in steps, their tasks and their arcs",
    "_prev": _TASKS,
    "_task": _TASKS,
    "_attempt": _TASKS,
    "_idempotency_key": _TASKS,
    "outcome": _AFTER_TASK,
    "output": _AFTER_TASK,
    "event": "in admission rules, in a step's `set` and on its arcs",
}
WHERE["vars"] = WHERE["ctx"]

BUILT_IN = frozenset({"execution_id", "job"})
_SERVER = BUILT_IN | {"workload", "ctx", "vars", "args", "input"}
_WORKER = _SERVER | {"keychain", "step", "iter"}
_PIPELINE = _WORKER | {"_prev", "_task", "_attempt", "_idempotency_key"}
_AFTER = _PIPELINE | {"outcome", "output"}
_ENDED = _SERVER | {"event", "outcome", "output", "step"}
_NOT_IN_WORKBOOK = frozenset({"iter", "args", "step", "_prev"})

BY_ROLE: dict[Role, frozenset[str]] = {
    "workload": BUILT_IN,
    "executor": BUILT_IN | {"workload"},
    "keychain": BUILT_IN | {"workload", "keychain"},
    "admit": _SERVER | {"event"},
    "loop": _SERVER,
    "step_spec": _SERVER,
    "cursor": _WORKER - {"iter"},
    "step_input": _WORKER,
    "task_input": _PIPELINE,
    "task_rule": _AFTER,
    "task_then": _AFTER,
    "task_set": _AFTER,
    "step_set": _ENDED,
    "arc_when": _ENDED,
    "arc_args": _ENDED,
    "arc_set": _ENDED,
}
IN_WORKBOOK: dict[Role, frozenset[str]] = {role: known - _NOT_IN_WORKBOOK for role, known in BY_ROLE.items()}
IN_PIPELINE: frozenset[Role] = frozenset({"task_input", "task_rule", "task_then", "task_set"})
PER_ITEM: frozenset[Role] = IN_PIPELINE | {"step_input"}
AFTER_STEP: frozenset[Role] = frozenset({"step_set", "arc_when", "arc_args", "arc_set"})
ON_SERVER: frozenset[Role] = AFTER_STEP | {"admit", "loop", "step_spec", "workload", "executor"}
BEFORE_START: frozenset[Role] = frozenset({"workload", "executor", "keychain"})

FRAME_NAMES = frozenset({"frame"})  # in the claim of a cursor loop in frames
LOOP_NAMES = frozenset({"loop_index", "_index"})
ITER_FIELDS: dict[str, str] = {
    "index": "Index of the item, from 0.",
    "total": "Number of items.",
    "first": "Whether this is the first item.",
    "last": "Whether this is the last item.",
    "parent": "Enclosing iteration.",
    "_index": "Alias of `index`.",
    "_total": "Alias of `total`.",
    "_first": "Alias of `first`.",
    "_last": "Alias of `last`.",
}
CTX_FIELDS: dict[str, str] = {"signals": "Signals that the execution received, by name."}
FINAL_ARGS = frozenset({"counts", "failures", "results"})
_NONE: frozenset[str] = frozenset()


class Names(Struct, frozen=True):
    """The names that a playbook defines; the maps are by step, `workbook` is by task."""

    workload: frozenset[str]
    steps: frozenset[str]
    ctx: frozenset[str]
    args: dict[str, frozenset[str]]  # keys that an arc binds for the step
    open_workload: bool  # a payload may add undeclared keys
    labels: dict[str, dict[str, int]]  # its tasks with their index in the pipeline
    iter: dict[str, frozenset[str]]  # keys of `iter` that its tasks write
    scratch: dict[str, frozenset[str]]  # keys of `step` that it writes
    workbook: dict[str, frozenset[str]]  # inputs that callers pass
    compensations: frozenset[str]

    @staticmethod
    def of(playbook: Playbook) -> Names:
        schema = playbook.executor.setting("workload_schema")
        declared = set(playbook.workload)
        if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
            declared.update(schema["properties"])
        steps = playbook.workflow
        writes: dict[str, list[Assign]] = {}
        labels: dict[str, dict[str, int]] = {}
        for step in steps:  # of two steps with one name, either may be meant
            writes.setdefault(step.name, []).extend(step_writes(step))
            labels.setdefault(step.name, {}).update((task.label, place) for place, task in enumerate(step.tasks))
        return Names(
            workload=frozenset(declared),
            steps=frozenset(writes),
            ctx=frozenset(key for assigns in writes.values() for key in _keys(assigns, "ctx")),
            args=_arc_arguments(playbook),
            open_workload=not declared,
            labels=labels,
            iter={name: frozenset(_keys(assigns, "iter")) for name, assigns in writes.items()},
            scratch={name: frozenset(_keys(assigns, "step")) for name, assigns in writes.items()},
            workbook=_call_inputs(steps),
            compensations=frozenset(step.compensate for step in steps if step.compensate),
        )


def task_writes(task: Task) -> Iterable[Assign]:
    """Yield the writes of a task and of its rules."""
    yield from task.sets
    for rule in task.rules or ():
        yield from rule.then.sets


def step_writes(step: Step) -> Iterable[Assign]:
    """Yield the writes of a step's tasks, of the step and of its arcs."""
    for task in step.tasks:
        yield from task_writes(task)
    yield from step.sets
    for arc in step.arcs:
        yield from arc.sets


def _keys(assigns: Iterable[Assign], scope: str) -> Iterable[str]:
    return (assign.key.split(".", 1)[0] for assign in assigns if assign.scope == scope)


def _arc_arguments(playbook: Playbook) -> dict[str, frozenset[str]]:
    keys: dict[str, set[str]] = {}
    for step in playbook.workflow:
        for arc in step.arcs:
            keys.setdefault(arc.step, set()).update(arc.args)
    final = playbook.executor.setting("final_step")
    if isinstance(final, str):
        keys.setdefault(final, set()).update(FINAL_ARGS)
    return {name: frozenset(own) for name, own in keys.items()}


def _call_inputs(steps: Iterable[Step]) -> dict[str, frozenset[str]]:
    keys: dict[str, set[str]] = {}
    for step in steps:
        for task in step.tasks:
            if task.kind == "workbook":
                named = task.fields.get("task")
                called = str(named.data) if named else task.label
                keys.setdefault(called, set()).update(task.input, step.input)
    return {name: frozenset(own) for name, own in keys.items()}


def scopes_at(site: TemplateSite) -> frozenset[str]:
    """Return the scopes that exist for this template; `iter` even without a loop."""
    return IN_WORKBOOK[site.role] if site.in_workbook else BY_ROLE[site.role]


def in_iteration(site: TemplateSite) -> bool:
    """Return whether this template is rendered once per item of a loop."""
    return site.step is not None and site.step.loop is not None and site.role in PER_ITEM


def claims_frames(site: TemplateSite) -> bool:
    """Return whether this template is part of a claim of rows in frames."""
    loop = site.step.loop if site.step is not None else None
    return site.role == "cursor" and loop is not None and "frame" in loop.spec


def input_names(site: TemplateSite, names: Names) -> frozenset[str]:
    """Return the keys that `args` and `input` may have here."""
    own = _inputs_for(site, site.task.input) if site.task and site.role in IN_PIPELINE else _NONE
    if site.in_workbook:
        return own | names.workbook.get(site.task.label, _NONE) if site.task else own
    if site.step is None:
        return own
    return own | names.args.get(site.step.name, _NONE) | _inputs_for(site, site.step.input)


def binds(site: TemplateSite, names: Names, name: str) -> bool:
    """Return whether `args` and `input` may have a key here."""
    if site.task and site.role in IN_PIPELINE and _is_input(site, site.task.input.get(name)):
        return True
    if site.in_workbook:
        return site.task is not None and name in names.workbook.get(site.task.label, _NONE)
    if site.step is None:
        return False
    return name in names.args.get(site.step.name, _NONE) or _is_input(site, site.step.input.get(name))


def _is_input(site: TemplateSite, value: Value | None) -> bool:
    """Return whether an input exists and does not hold the template itself."""
    return value is not None and (value.at is None or not value.at.start <= site.node.start < value.at.end)


def _inputs_for(site: TemplateSite, inputs: Mapping[str, Value]) -> frozenset[str]:
    return frozenset(name for name, value in inputs.items() if _is_input(site, value))


def iteration_names(site: TemplateSite, names: Names) -> frozenset[str]:
    """Return the keys that `iter` has here."""
    step = site.step
    if step is None or step.loop is None:
        return frozenset(ITER_FIELDS)
    return frozenset({step.loop.iterator, *ITER_FIELDS}) | names.iter.get(step.name, _NONE)


def is_iteration_key(site: TemplateSite, names: Names, name: str) -> bool:
    """Return whether `iter` has a key here."""
    step = site.step
    if name in ITER_FIELDS or step is None or step.loop is None:
        return name in ITER_FIELDS
    return name == step.loop.iterator or name in names.iter.get(step.name, _NONE)


def label_places(site: TemplateSite, names: Names) -> Mapping[str, int]:
    """Return the labels that are names here, with their index in the pipeline."""
    if site.step is None or site.in_workbook or site.role not in IN_PIPELINE:
        return {}
    return names.labels.get(site.step.name, {})


def visible(site: TemplateSite, names: Names) -> frozenset[str]:
    """Return every root name that this template may read."""
    known = scopes_at(site)
    if site.role == "workload":
        return known
    if site.role in BEFORE_START:
        return known | names.workload
    known = known | names.workload | names.ctx | frozenset(CTX_FIELDS) | input_names(site, names)
    if site.in_workbook:
        return known
    if claims_frames(site):
        known |= FRAME_NAMES
    if in_iteration(site):
        known |= LOOP_NAMES | iteration_names(site, names)
    return known | names.steps | frozenset(label_places(site, names))
