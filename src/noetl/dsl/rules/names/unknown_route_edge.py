"""NOE215 reports a `route_edge` whose label no arc has."""

from __future__ import annotations

from collections.abc import Iterator, Set

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.tree.playbook import Value

GOOD = example("""\
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: load
    spec: { on_step_fail: "route_edge:broken" }
    tool: { kind: http, url: "{{ workload.api }}/rows" }
    next:
      arcs:
        - step: store
        - step: alarm
          label: broken
          when: "{{ event.name == 'step.failed' }}"
  - step: store
    tool: { kind: noop }
  - step: alarm
    tool: { kind: noop }
""")
_PREFIX = "route_edge:"


def check(subject: CheckContext) -> Iterator[Finding]:
    workflow = subject.playbook.workflow
    everywhere = {arc.label for step in workflow for arc in step.arcs if arc.label}
    whole = subject.playbook.executor.spec.get("on_step_fail")
    yield from _check_label(subject, whole, everywhere, "no arc of this workflow has this label")
    for step in workflow:
        own = {arc.label for arc in step.arcs if arc.label}
        setting = step.spec.get("on_step_fail")
        yield from _check_label(subject, setting, own, f"no arc of step '{step.name}' has this label")


def _check_label(subject: CheckContext, setting: Value | None, labels: Set[str], reason: str) -> Iterator[Finding]:
    if setting is None or setting.at is None or not isinstance(setting.data, str):
        return
    label = setting.data.removeprefix(_PREFIX)
    if setting.data.startswith(_PREFIX) and label and label not in labels and label not in subject.obscured:
        hint = subject.suggestions.did_you_mean(label, labels)
        message = f"A failure should follow the arc with label '{label}', but {reason}.{hint}"
        yield at(setting.at, message, f"Add `label: {label}` to the arc, or correct the label here.")


RULE = Rule(
    code="NOE215",
    name="unknown-route-edge",
    severity="error",
    summary="`on_step_fail: route_edge:<label>` names a label that no arc has.",
    why="The failure cannot be routed, so it stops the whole execution although the playbook should handle it.",
    fix="Add this `label` to the arc that failures should follow. On a step, it must be an arc of that step.",
    bad=GOOD.replace("route_edge:broken", "route_edge:brokn"),
    good=GOOD,
    check=check,
)
