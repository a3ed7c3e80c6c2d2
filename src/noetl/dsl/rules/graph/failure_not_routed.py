"""NOE407 reports a step whose failure should continue, but no arc matches it."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import key_at

GOOD = example("""\
executor:
  spec: { on_step_fail: continue }
workflow:
  - step: fetch
    tool: { kind: http, url: "https://example.org/data" }
    next:
      arcs:
        - step: store
          when: "{{ outcome.status == 'ok' }}"
        - step: use_yesterday
          when: "{{ outcome.status == 'error' }}"
  - step: store
    tool: { kind: noop }
  - step: use_yesterday
    tool: { kind: noop }
""")
BAD = GOOD.replace("        - step: use_yesterday\n          when: \"{{ outcome.status == 'error' }}\"\n", "").replace(
    "  - step: use_yesterday\n    tool: { kind: noop }\n", ""
)


def check(subject: CheckContext) -> Iterator[Finding]:
    if not subject.net_is_whole:
        return
    flow = subject.flow
    for step in subject.net.steps:
        if not step.tasks or not step.arcs or flow.setting(step, "on_step_fail") != "continue":
            continue
        success, *failures = flow.endings(step)
        if any(flow.ways(step, ending).possible for ending in failures) or not flow.ways(step, success).possible:
            continue
        place = key_at(step.at, "next")
        if place is not None:
            yield at(
                place,
                f"After a failure of step '{step.name}' the run should continue (`on_step_fail: continue`), but none of its "
                "arcs can match a failure: the branch ends there and the steps after it do not run.",
                "Add an arc with `when: \"{{ outcome.status == 'error' }}\"`, or one without `when`, which matches both.",
            )


RULE = Rule(
    code="NOE407",
    name="failure-not-routed",
    severity="warning",
    summary="With `on_step_fail: continue`, a step has arcs, but none matches a failure.",
    why=(
        "`continue` evaluates the arcs again as if the step were done, with `outcome.status == 'error'`. When every arc "
        "requires success, nothing continues: the rest of the branch is silently skipped."
    ),
    fix="Add an arc for the failure, or let this step halt the run: `spec: { on_step_fail: halt }`.",
    bad=BAD,
    good=GOOD,
    check=check,
)
