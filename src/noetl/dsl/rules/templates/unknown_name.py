"""NOE302 reports a name that nothing in the playbook brings."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.diagnostic import nearest
from noetl.dsl.references import Reference
from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.templates.reporting import at_element
from noetl.dsl.scopes import visible
from noetl.dsl.subject import Subject
from noetl.expr import FUNCTIONS

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: cities, path: examples/cities }
workload: { cities: [Oslo, Rome], api: "http://127.0.0.1:8080" }
workflow:
  - step: forecast
    loop: { in: "{{ workload.cities }}", iterator: city }
    tool: { kind: http, url: "{{ workload.api }}/{{ city }}" }
"""
# Names that other systems and older playbooks have, with what stands for them here.
_ELSEWHERE = {
    "null": "write `none`",
    "nil": "write `none`",
    "undefined": "write `x is defined` or `x is none`",
    "yes": "write `true`",
    "no": "write `false`",
    "response": "the result is `outcome.result` in rules and arcs, `output.data` in the `set` of a task",
    "this": "the result is `outcome.result` in rules and arcs, and has the name of its step later",
    "result": "the result is `outcome.result` in rules and arcs, `_prev` in the next task, and has the name of its step later",
    "error": "the error is `outcome.error`",
    "loop": "the iteration is `iter`: `iter.index`, `iter.first`, `iter.last`",
    "env": "templates see no environment: pass the value in `workload`, a secret by `auth`",
    "secret": "credentials are `keychain.<name>`, or `auth: <name>` on the task",
    "secrets": "credentials are `keychain.<name>`, or `auth: <name>` on the task",
    "steps": "the result of a step has the step's own name, without `steps.`",
    "tasks": "the result of a task has the task's own label, without `tasks.`",
    "context": "the state is `ctx`",
    "state": "the state is `ctx`",
    "inputs": "inputs of a step are `input`, those of the execution `workload`",
    "params": "inputs of a step are `input`, those of the execution `workload`",
    "payload": "the payload of a run is part of `workload`",
    "trigger": "what started the run comes in `workload`",
    "prev": "the result of the task before is `_prev`",
    "previous": "the result of the task before is `_prev`",
    "attempt": "the number of the attempt is `_attempt`",
    "index": "the number of the item is `iter.index`, inside a loop",
    "item": "the item of a loop has the name that `loop.iterator` gives",
}


def check(subject: Subject) -> Iterator[Found]:
    told: set[tuple[int, str]] = set()
    for reference in subject.references:
        name = reference.name
        if reference.means or reference.read.guarded or name in subject.obscured:
            continue
        once = (id(reference.site), name)
        if once not in told:
            told.add(once)
            yield _found(reference, subject)


def _found(reference: Reference, subject: Subject) -> Found:
    name = reference.name
    known = visible(reference.site, subject.names)
    advice = _advice(reference, subject)
    message = f"There is no '{name}' here."
    if advice:
        return at_element(subject, reference, 0, message, f"{advice[0].upper()}{advice[1:]}.")
    meant = nearest(name, known)
    if meant:
        fix = f"Correct the name, or declare '{name}' under `workload` if it comes with the payload."
        return at_element(subject, reference, 0, f"{message} Did you mean '{meant}'?", fix)
    fix = f"Declare '{name}' under `workload`, or name the scope that it is read from: `ctx.{name}`, `args.{name}`, …"
    # Without a declared workload the payload may bring any name.
    return at_element(subject, reference, 0, message, fix, "warning" if subject.names.open_workload else None)


def _advice(reference: Reference, subject: Subject) -> str | None:
    name, site = reference.name, reference.site
    if name in FUNCTIONS:
        return f"`{name}` is a function: write `{name}()`"
    if site.role == "workload" and name in subject.names.workload:
        return "values of `workload` see built-ins only: combine the two where they are used"
    if site.in_workbook and name in subject.names.steps:
        return (
            f"a task of the workbook sees no results of steps: pass it in, `input: {{ {name}: … }}`, where it is called"
        )
    for step in subject.playbook.workflow:
        if name in subject.names.labels[step.name] and step is not site.step:
            return (
                f"'{name}' is a task of step '{step.name}': its result is `{step.name}.{name}` once the step has ended"
            )
    own = site.step
    if own and own.loop and name == own.loop.iterator:
        return f"the item '{name}' exists in the tasks of the loop only; after it the results are `{own.name}.results`"
    if own and name in subject.names.labels.get(own.name, {}):
        return f"'{name}' is a task of this step: its result is `{own.name}.{name}` once the step has ended"
    return _ELSEWHERE.get(name)


RULE = Rule(
    code="NOE302",
    name="unknown-name",
    group="templates",
    severity="error",
    summary="A template reads a name that does not exist.",
    why=(
        "A name is a scope, a key of the workload, a step, a task of the pipeline, an iterator, or something written to "
        "`ctx`. Anything else is undefined when the run comes to it, and an undefined value that reaches a tool fails the "
        "step."
    ),
    fix="Correct the name, or bring it: declare it under `workload`, bind it in `args`, write it with `set`.",
    bad=GOOD.replace("{{ city }}", "{{ ctiy }}"),
    good=GOOD,
    check=check,
)
