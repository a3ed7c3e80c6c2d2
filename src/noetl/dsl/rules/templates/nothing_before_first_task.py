"""NOE315 reports `_prev` in the first task of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.rules.templates.pipeline_order import PipelineOrders
from noetl.dsl.rules.templates.reporting import at_element

GOOD = example("""\
workflow:
  - step: load
    tool: { kind: noop, result: [1, 2] }
    next: count
  - step: count
    tool:
      - size: { kind: python, args: { rows: "{{ load }}" }, code: result = len(rows) }
      - show: { kind: noop, message: "{{ _prev }} rows" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    orders = PipelineOrders()
    for reference in subject.references:
        site = reference.site
        if reference.name != "_prev" or reference.means != ("scope",) or reference.read.guarded:
            continue
        first = site.step.tasks[0] if site.step else None
        if site.step is None or site.task is not first or orders.of(site.step).restarts:
            continue
        message = f"Task '{site.task.label if site.task else ''}' is the first of its pipeline, so `_prev` is empty."
        fix = "Read the result of an earlier step by its name, or an argument of the arc as `args.<name>`."
        yield at_element(subject, reference, 0, message, fix)


RULE = Rule(
    code="NOE315",
    name="nothing-before-first-task",
    severity="warning",
    summary="The first task of a pipeline reads `_prev`.",
    why="`_prev` is the result of the previous task in the same step, not of the previous step.",
    fix="Read the other step by its name, `{{ fetch }}`, or pass the value in the `args` of the arc.",
    bad=GOOD.replace("{{ load }}", "{{ _prev }}"),
    good=GOOD,
    check=check,
)
