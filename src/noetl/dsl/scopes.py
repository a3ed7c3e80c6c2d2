"""Which names a template may read, by the role it plays.

The table is the language's; which names a particular playbook adds (workload keys, steps, labels, writes to `ctx`) is
gathered here too. What one read stands for is told by `references`. Tested in tests/unit/dsl/test_scopes.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from noetl.dsl.playbook import Assign, Playbook, Step, Task, Value
from noetl.dsl.sites import Role, Site

SCOPES: dict[str, str] = {
    "workload": "The input of the execution; its keys are bare names too.",
    "keychain": "Resolved credentials; on the worker only.",
    "ctx": "The execution's state; every change is an event.",
    "vars": "Another name for `ctx`.",
    "iter": "This iteration of the step's loop.",
    "step": "Scratch values of this step-run.",
    "args": "What the arc bound for this step-run.",
    "input": "`args` overlaid with the inputs of the step and the task.",
    "_prev": "The result of the task before.",
    "_task": "The label of this task.",
    "_attempt": "The number of this attempt, from 1.",
    "_idempotency_key": "The key that is the same for every try of this piece of work.",
    "outcome": "What the task or the step came to: status, result, error, meta.",
    "output": "The same as `outcome`, with `data` for `result`.",
    "event": "The event that is being decided.",
    "execution_id": "The id of this execution, a numeric text.",
    "job": "`job.uuid`, a unique id of this execution.",
}
_TASKS = "in the tasks of a step: their inputs, rules and `set`"
_AFTER_TASK = "in the rules and the `set` of a task, in a step's `set` and on its arcs"
WHERE: dict[str, str] = {
    "workload": "everywhere but in `workload` itself",
    "keychain": "in the tasks of a step and in its `input`, on the worker",
    "ctx": "everywhere once the execution runs, so not in `workload`, `executor` and `keychain`",
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

LOOP_NAMES = frozenset({"loop_index", "_index"})
ITER_FIELDS: dict[str, str] = {
    "index": "The number of the item, from 0.",
    "total": "How many items there are.",
    "first": "Whether it is the first item.",
    "last": "Whether it is the last item.",
    "parent": "The iteration around this one.",
    "_index": "Another name for `index`.",
    "_total": "Another name for `total`.",
    "_first": "Another name for `first`.",
    "_last": "Another name for `last`.",
}
CTX_FIELDS: dict[str, str] = {"signals": "The signals that came for this execution, by name."}
FINAL_ARGS = frozenset({"counts", "failures", "results"})
_NONE: frozenset[str] = frozenset()


class Names(Struct, frozen=True):
    """The names that a playbook itself brings; the maps are by step, and `workbook` by task."""

    workload: frozenset[str]
    steps: frozenset[str]
    ctx: frozenset[str]
    args: dict[str, frozenset[str]]  # keys that some arc binds for it
    open_workload: bool  # keys that nobody declared may still come with a payload
    labels: dict[str, dict[str, int]]  # its tasks with their place in the pipeline
    iter: dict[str, frozenset[str]]  # keys that its tasks write
    scratch: dict[str, frozenset[str]]  # keys of `step` that it writes
    workbook: dict[str, frozenset[str]]  # keys that some call gives it
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
            args=_bound(playbook),
            open_workload=not declared,
            labels=labels,
            iter={name: frozenset(_keys(assigns, "iter")) for name, assigns in writes.items()},
            scratch={name: frozenset(_keys(assigns, "step")) for name, assigns in writes.items()},
            workbook=_given(steps),
            compensations=frozenset(step.compensate for step in steps if step.compensate),
        )


def task_writes(task: Task) -> Iterable[Assign]:
    """Give what a task writes, by itself and by its rules."""
    yield from task.sets
    for rule in task.rules or ():
        yield from rule.then.sets


def step_writes(step: Step) -> Iterable[Assign]:
    """Give what a step writes: its tasks, the step itself and its arcs."""
    for task in step.tasks:
        yield from task_writes(task)
    yield from step.sets
    for arc in step.arcs:
        yield from arc.sets


def _keys(assigns: Iterable[Assign], scope: str) -> Iterable[str]:
    return (assign.key.split(".", 1)[0] for assign in assigns if assign.scope == scope)


def _bound(playbook: Playbook) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for step in playbook.workflow:
        for arc in step.arcs:
            found.setdefault(arc.step, set()).update(arc.args)
    final = playbook.executor.setting("final_step")
    if isinstance(final, str):
        found.setdefault(final, set()).update(FINAL_ARGS)
    return {name: frozenset(keys) for name, keys in found.items()}


def _given(steps: Iterable[Step]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for step in steps:
        for task in step.tasks:
            if task.kind == "workbook":
                named = task.fields.get("task")
                called = str(named.data) if named else task.label
                found.setdefault(called, set()).update(task.input, step.input)
    return {name: frozenset(keys) for name, keys in found.items()}


def scopes_at(site: Site) -> frozenset[str]:
    """Give the scopes that exist where this template stands; `iter` also where its step has no loop."""
    return IN_WORKBOOK[site.role] if site.in_workbook else BY_ROLE[site.role]


def in_iteration(site: Site) -> bool:
    """Tell whether this template is rendered once per item of a loop."""
    return site.step is not None and site.step.loop is not None and site.role in PER_ITEM


def input_names(site: Site, names: Names) -> frozenset[str]:
    """Give the keys that `args` and `input` may have here."""
    own = _given_to(site, site.task.input) if site.task and site.role in IN_PIPELINE else _NONE
    if site.in_workbook:
        return own | names.workbook.get(site.task.label, _NONE) if site.task else own
    if site.step is None:
        return own
    return own | names.args.get(site.step.name, _NONE) | _given_to(site, site.step.input)


def _given_to(site: Site, inputs: Mapping[str, Value]) -> frozenset[str]:
    """Leave out the input that this template makes: `rows: "{{ rows }}"` reads another `rows`."""
    return frozenset(
        name
        for name, value in inputs.items()
        if value.at is None or not value.at.start <= site.node.start < value.at.end
    )


def iteration_names(site: Site, names: Names) -> frozenset[str]:
    """Give the keys that `iter` has here."""
    step = site.step
    if step is None or step.loop is None:
        return frozenset(ITER_FIELDS)
    return frozenset({step.loop.iterator, *ITER_FIELDS}) | names.iter.get(step.name, _NONE)


def label_places(site: Site, names: Names) -> Mapping[str, int]:
    """Give the labels that are names here, with their place in the pipeline."""
    if site.step is None or site.in_workbook or site.role not in IN_PIPELINE:
        return {}
    return names.labels.get(site.step.name, {})


def visible(site: Site, names: Names) -> frozenset[str]:
    """Give every root name that may stand in this template."""
    known = scopes_at(site)
    if site.role == "workload":
        return known
    if site.role in BEFORE_START:
        return known | names.workload
    known = known | names.workload | names.ctx | frozenset(CTX_FIELDS) | input_names(site, names)
    if site.in_workbook:
        return known
    if in_iteration(site):
        known |= LOOP_NAMES | iteration_names(site, names)
    return known | names.steps | frozenset(label_places(site, names))
