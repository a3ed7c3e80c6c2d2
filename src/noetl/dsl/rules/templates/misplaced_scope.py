"""NOE309 reports a read of a scope that does not exist here."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.references import Reference
from noetl.dsl.analysis.scopes import AFTER_STEP, IN_PIPELINE, WHERE
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.rules.templates.reporting import at_element

GOOD = example("""\
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: count
    tool:
      - fetch: { kind: http, url: "{{ workload.api }}/rows" }
      - size:
          kind: python
          args: { rows: "{{ _prev.data }}" }
          code: result = len(rows)
""")
_OUTCOMES = ("outcome", "output")


def check(subject: CheckContext) -> Iterator[Finding]:
    for reference in subject.references:
        if reference.means == ("misplaced",) and reference.name != "keychain" and not reference.read.guarded:
            name = reference.name
            message = f"`{name}` does not exist here. It exists {WHERE[name]}."
            yield at_element(subject, reference, 0, message, _instead(reference))


def _instead(reference: Reference) -> str:
    name, site = reference.name, reference.site
    if site.in_workbook:
        return "Pass the value in `input` where the task is called, and read it here as `input.<name>`."
    if name in _OUTCOMES and site.role == "task_input":
        if site.step and site.task and site.task.label == site.step.tasks[0].label:
            return (
                "Read the result of an earlier step by its name, or pass the value on the arc to this step "
                "(`args: { value: … }`) and read `args.value`."
            )
        return "Read the result of the previous task as `_prev`, or that of any earlier task by its label."
    if name == "_prev" and site.role in AFTER_STEP:
        return "Read the result of the step as `outcome.result`, or by the step's name."
    if name == "event" and site.role in IN_PIPELINE:
        return "In a task, read its own `outcome`; arcs handle the outcome of the step."
    if name == "iter" and site.role in AFTER_STEP:
        return "The loop has ended here: read `outcome.result.results`, one entry per item."
    if name in _OUTCOMES and site.role == "admit":
        return "Read the result of an earlier step by its name, or a value from `ctx`."
    return "Read another scope, or move the template to where this scope exists."


RULE = Rule(
    code="NOE309",
    name="misplaced-scope",
    severity="error",
    summary="A template reads a scope that does not exist at its position.",
    why=(
        "Some scopes exist only in a part of the run: `outcome` after a task, `event` during routing, `_prev` inside a "
        "pipeline, `iter` inside a loop. Elsewhere they are undefined."
    ),
    fix="Read another scope, or move the template. The message says where the scope exists.",
    bad=GOOD.replace("{{ _prev.data }}", "{{ outcome.result.data }}"),
    good=GOOD,
    check=check,
)
