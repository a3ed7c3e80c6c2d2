"""NOE407 reports a step whose failure no arc takes although the run is to continue after it."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.graph.places import key
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
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
"""
BAD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
executor:
  spec: { on_step_fail: continue }
workflow:
  - step: fetch
    tool: { kind: http, url: "https://example.org/data" }
    next:
      arcs:
        - step: store
          when: "{{ outcome.status == 'ok' }}"
  - step: store
    tool: { kind: noop }
"""


def check(subject: Subject) -> Iterator[Found]:
    if not subject.net_is_whole:
        return
    flow = subject.flow
    for step in subject.net.steps:
        if not step.tasks or not step.arcs or flow.setting(step, "on_step_fail") != "continue":
            continue
        success, *failures = flow.endings(step)
        if any(flow.ways(step, ending).possible for ending in failures) or not flow.ways(step, success).possible:
            continue
        place = key(step.at, "next")
        if place is not None:
            yield at(
                place,
                f"A failure of step '{step.name}' is to continue (`on_step_fail: continue`), but none of its arcs can "
                "match a failure: the branch ends there and the steps behind it do not run.",
                "Add an arc with `when: \"{{ outcome.status == 'error' }}\"`, or one without `when`, which is taken either way.",
            )


RULE = Rule(
    code="NOE407",
    name="failure-not-routed",
    group="graph",
    severity="warning",
    summary="With `on_step_fail: continue`, a step has arcs but none that a failure can take.",
    why=(
        "`continue` tries the arcs once more as if the step were done, with `outcome.status == 'error'`. When every arc asks "
        "for a success, nothing continues: the rest of the branch is skipped without a word."
    ),
    fix="Add an arc that takes the failure, or let this step halt the run: `spec: { on_step_fail: halt }`.",
    bad=BAD,
    good=GOOD,
    check=check,
)
