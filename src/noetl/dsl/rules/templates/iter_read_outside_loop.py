"""NOE312 reports a read of `iter` in a step that has no loop."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.rules.templates.reporting import at_element

GOOD = example("""\
workload: { cities: [Oslo, Rome], api: "http://127.0.0.1:8080" }
workflow:
  - step: forecast
    loop: { in: "{{ workload.cities }}", iterator: city }
    tool: { kind: http, url: "{{ workload.api }}/{{ iter.city }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for reference in subject.references:
        step = reference.site.step
        if reference.name != "iter" or reference.means != ("scope",) or step is None or step.loop is not None:
            continue
        key = reference.key
        written = key in subject.names.iter[step.name] or key in subject.obscured
        if key != "parent" and not written and not reference.read.guarded and "iterator" not in subject.obscured:
            message = f"`iter` exists only in a loop, but step '{step.name}' has none."
            yield at_element(
                subject, reference, 0, message, "Add a `loop` to the step, or read `args`, `ctx` or `workload`."
            )


RULE = Rule(
    code="NOE312",
    name="iter-read-outside-loop",
    severity="error",
    summary="A template reads `iter` in a step without a loop.",
    why="`iter` holds the state of one loop iteration. Without a loop it is undefined.",
    fix="Add a `loop` to the step, or read the scope that has the value: `args`, `ctx` or `workload`.",
    bad=GOOD.replace('    loop: { in: "{{ workload.cities }}", iterator: city }\n', ""),
    good=GOOD,
    check=check,
)
