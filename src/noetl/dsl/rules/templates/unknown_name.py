"""NOE302 reports a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from noetl.dsl.analysis.references import Reference
from noetl.dsl.analysis.scopes import FINAL_ARGS, ITER_FIELDS, LOOP_NAMES, visible
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.rules.templates.reporting import at_element
from noetl.dsl.tree.playbook import Step
from noetl.expr import FUNCTIONS

Labels = dict[str, list[Step]]  # the steps with a task of a label

GOOD = example("""\
workload: { cities: [Oslo, Rome], api: "http://127.0.0.1:8080" }
workflow:
  - step: forecast
    loop: { in: "{{ workload.cities }}", iterator: city }
    tool: { kind: http, url: "{{ workload.api }}/{{ city }}" }
""")
# Names of other systems and older playbooks, with their replacement.
_ELSEWHERE = {
    "null": "write `none`",
    "nil": "write `none`",
    "undefined": "write `x is defined` or `x is none`",
    "yes": "write `true`",
    "no": "write `false`",
    "response": "the result is `outcome.result` in rules and arcs, `output.data` in the `set` of a task",
    "this": "the result is `outcome.result` in rules and arcs; later steps read it by the name of its step",
    "result": "the result is `outcome.result` in rules and arcs, `_prev` in the next task, and the name of its step later",
    "error": "the error is `outcome.error`",
    "loop": "the iteration is `iter`: `iter.index`, `iter.first`, `iter.last`",
    "env": "templates cannot read the environment: pass the value in `workload`, a secret with `auth`",
    "secret": "credentials are `keychain.<name>`, or `auth: <name>` on the task",
    "secrets": "credentials are `keychain.<name>`, or `auth: <name>` on the task",
    "steps": "read the result of a step by its name, without `steps.`",
    "tasks": "read the result of a task by its label, without `tasks.`",
    "context": "the state is `ctx`",
    "state": "the state is `ctx`",
    "inputs": "inputs of a step are `input`, those of the execution `workload`",
    "params": "inputs of a step are `input`, those of the execution `workload`",
    "payload": "the payload of a run is part of `workload`",
    "trigger": "the trigger of the run is in `workload`",
    "prev": "the result of the previous task is `_prev`",
    "previous": "the result of the previous task is `_prev`",
    "attempt": "the number of the attempt is `_attempt`",
    "index": "the number of the item is `iter.index`, inside a loop",
    "item": "`loop.iterator` names the item of a loop",
}

_IN_WORKLOAD = (
    "Write a fixed value, or pass it in the payload: templates in `workload` can only read built-ins such as `now()` and "
    "`execution_id`."
)


def check(subject: CheckContext) -> Iterator[Finding]:
    reported: set[tuple[int, str]] = set()
    labels: Labels = {}
    for step in subject.playbook.workflow:
        for label in subject.names.labels[step.name]:
            labels.setdefault(label, []).append(step)
    for reference in subject.references:
        name = reference.name
        if reference.means or reference.read.guarded or name in subject.obscured or _is_hidden(reference, subject):
            continue
        once = (id(reference.site), name)
        if once not in reported:
            reported.add(once)
            yield _report(reference, subject, labels)


def _is_hidden(reference: Reference, subject: CheckContext) -> bool:
    """Return whether another rule reports the part that the name belongs to."""
    if reference.name in subject.missing_steps:
        return True
    if reference.name in LOOP_NAMES or reference.name in ITER_FIELDS:
        return "iterator" in subject.obscured
    step = reference.site.step
    return reference.name in FINAL_ARGS and step is not None and step.name in subject.obscured


def _report(reference: Reference, subject: CheckContext, labels: Labels) -> Finding:
    name = reference.name
    advice = _advice(reference, subject, labels)
    message = f"There is no '{name}' here."
    if advice:
        return at_element(subject, reference, 0, message, f"{advice[0].upper()}{advice[1:]}.")
    meant = subject.suggestions.nearest(name, partial(visible, reference.site, subject.names))
    if reference.site.role == "workload":
        hint = f" Did you mean '{meant}'?" if meant else ""
        return at_element(subject, reference, 0, f"{message}{hint}", _IN_WORKLOAD)
    if meant:
        fix = f"Correct the name, or declare '{name}' under `workload` if the payload provides it."
        return at_element(subject, reference, 0, f"{message} Did you mean '{meant}'?", fix)
    fix = f"Declare '{name}' under `workload`, or add its scope: `ctx.{name}`, `args.{name}`, …"
    # Without a declared workload, the payload may provide any name.
    return at_element(subject, reference, 0, message, fix, "warning" if subject.names.open_workload else None)


def _advice(reference: Reference, subject: CheckContext, labels: Labels) -> str | None:
    name, site = reference.name, reference.site
    if name in FUNCTIONS:
        return f"`{name}` is a function: write `{name}()`"
    if site.role == "workload" and name in subject.names.workload:
        return "templates in `workload` can only read built-ins: combine the two values where you use them"
    if site.in_workbook and name in subject.names.steps:
        return f"a workbook task cannot read results of steps: pass it as `input: {{ {name}: … }}` where the task is called"
    for step in labels.get(name, ())[:2]:
        if step is not site.step:
            return f"'{name}' is a task of step '{step.name}': read its result as `{step.name}.{name}` after the step has ended"
    own = site.step
    if own and own.loop and name == own.loop.iterator:
        return f"the item '{name}' exists only inside the loop; afterwards read `{own.name}.results`"
    if own and name in subject.names.labels.get(own.name, {}):
        return f"'{name}' is a task of this step: read its result as `{own.name}.{name}` after the step has ended"
    return _ELSEWHERE.get(name)


RULE = Rule(
    code="NOE302",
    name="unknown-name",
    severity="error",
    summary="A template reads a name that does not exist.",
    why=(
        "A name is a scope, a key of the workload, a step, a task of the pipeline, an iterator, or a key of `ctx`. Any other "
        "name is undefined at run time, and an undefined value that reaches a tool fails the step."
    ),
    fix="Correct the name, or define it: declare it under `workload`, bind it in `args`, or write it with `set`.",
    bad=GOOD.replace("{{ city }}", "{{ ctiy }}"),
    good=GOOD,
    check=check,
)
