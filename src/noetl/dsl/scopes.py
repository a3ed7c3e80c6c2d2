"""Which names a template may read, by the role it plays.

The table is the language's; which names a particular playbook adds (workload keys, steps, labels, writes to `ctx`) is
gathered here too. Tested in tests/unit/dsl/test_scopes.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from noetl.dsl.playbook import Playbook, Step
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
BUILT_IN = frozenset({"execution_id", "job"})
_SERVER = BUILT_IN | {"workload", "ctx", "vars", "args", "input", "iter"}
_WORKER = _SERVER | {"keychain", "step"}
_PIPELINE = _WORKER | {"_prev", "_task", "_attempt", "_idempotency_key"}
_ENDED = _SERVER | {"event", "outcome", "output", "step"}
LOOP_NAMES = frozenset({"loop_index", "_index"})

BY_ROLE: dict[Role, frozenset[str]] = {
    "workload": BUILT_IN,
    "executor": BUILT_IN | {"workload"},
    "keychain": BUILT_IN | {"workload", "keychain"},
    "admit": _SERVER | {"event"},
    "loop": _SERVER,
    "step_spec": _SERVER,
    "cursor": _WORKER,
    "step_input": _WORKER,
    "task_input": _PIPELINE,
    "task_rule": _PIPELINE | {"outcome", "output"},
    "task_then": _PIPELINE | {"outcome", "output"},
    "task_set": _PIPELINE | {"outcome", "output"},
    "step_set": _ENDED,
    "arc_when": _ENDED,
    "arc_args": _ENDED,
    "arc_set": _ENDED,
}
IN_PIPELINE: frozenset[Role] = frozenset({"task_input", "task_rule", "task_then", "task_set"})
ON_SERVER: frozenset[Role] = frozenset(
    {"admit", "loop", "step_spec", "step_set", "arc_when", "arc_args", "arc_set", "workload", "executor"}
)


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a playbook itself brings."""

    workload: frozenset[str]
    steps: frozenset[str]
    ctx: frozenset[str]
    args: dict[str, frozenset[str]]  # step → keys that some arc binds for it
    open_workload: bool  # keys that nobody declared may still come with a payload

    @staticmethod
    def of(playbook: Playbook) -> Names:
        ctx: set[str] = set()
        args: dict[str, set[str]] = {}
        for step in playbook.workflow:
            writes = [*step.sets, *(a for arc in step.arcs for a in arc.sets)]
            for task in step.tasks:
                writes += [*task.sets, *(a for rule in task.rules or () for a in rule.then.sets)]
            ctx.update(write.key.split(".", 1)[0] for write in writes if write.scope == "ctx")
            for arc in step.arcs:
                args.setdefault(arc.step, set()).update(arc.args)
        schema = playbook.executor.setting("workload_schema")
        declared = set(playbook.workload)
        if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
            declared.update(schema["properties"])
        return Names(
            frozenset(declared),
            frozenset(step.name for step in playbook.workflow),
            frozenset(ctx),
            {name: frozenset(keys) for name, keys in args.items()},
            open_workload=not declared,
        )


def visible(site: Site, names: Names) -> frozenset[str]:
    """Give every root name that may stand in this template."""
    known = BY_ROLE[site.role]
    if site.role in ("workload", "keychain", "executor"):
        return known | (names.workload if site.role != "workload" else frozenset())
    known = known | names.workload | names.ctx | names.steps
    if site.in_workbook:
        return (known - {"iter", "args"} - names.steps) | frozenset(site.task.input if site.task else ())
    if site.step:
        known |= names.args.get(site.step.name, frozenset()) | frozenset(site.step.input)
        known |= loop_names(site.step)
    if site.task and site.role in IN_PIPELINE:
        known |= frozenset(site.task.input)
        known |= frozenset(task.label for task in site.step.tasks) if site.step else frozenset()
    return known


def loop_names(step: Step) -> frozenset[str]:
    return frozenset({step.loop.iterator}) | LOOP_NAMES if step.loop else frozenset()
