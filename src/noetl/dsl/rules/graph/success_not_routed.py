"""NOE406 reports a router without an arc for success."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import key_at
from noetl.dsl.rules.graph.stranded_steps import only_on_failure, stranded
from noetl.dsl.tree.playbook import Step

GOOD = example("""\
workflow:
  - step: fetch
    tool: { kind: http, url: "https://example.org/data" }
    next:
      arcs:
        - step: alarm
          when: "{{ event.name == 'step.failed' }}"
        - step: store
  - step: alarm
    tool: { kind: noop }
  - step: store
    tool: { kind: noop }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    if not subject.net_is_whole:
        return
    left_out: dict[int, list[str]] = {}
    for head, cause in stranded(subject).items():
        if cause is not None:
            left_out.setdefault(cause, []).append(subject.net.steps[head].name)
    for number, step in enumerate(subject.net.steps):
        strict = subject.flow.setting(step, "no_next_is_error") is True
        if not strict and number not in left_out:
            continue
        place = key_at(step.at, "next")
        if place is not None and only_on_failure(subject, step) and not _is_reported_elsewhere(subject, step):
            yield at(place, *_texts(step, left_out.get(number, []), strict), "error" if strict else None)


def _is_reported_elsewhere(subject: CheckContext, step: Step) -> bool:
    """Return whether another rule reports the arcs: dead or constant ones."""
    flow = subject.flow
    if not any(flow.ways(step, ending).possible for ending in flow.endings(step)[1:]):
        return True
    return any(flow.is_constant(arc.when) for arc in step.arcs)


def _texts(step: Step, left_out: list[str], strict: bool) -> tuple[str, str]:
    message = f"After a success of step '{step.name}', none of its arcs can be taken"
    follower = left_out[0] if left_out else "<step>"
    if strict:
        message += ", and `no_next_is_error` makes this a failure."
    else:
        names = ", ".join(f"'{name}'" for name in left_out)
        message += f": the branch ends there, and {names} never runs."
    return message, f"Add an arc without `when`, which matches success: `- step: {follower}`."


RULE = Rule(
    code="NOE406",
    name="success-not-routed",
    severity="warning",
    summary="Every arc of a router is for failures, but a step should follow a success.",
    why=(
        "If no arc matches a success, the branch silently ends, and the steps after it do not run. With "
        "`no_next_is_error: true`, every success becomes a failure."
    ),
    fix="Add an arc for success: one without `when`, or one whose `when` is true for `event.name == 'step.done'`.",
    bad=GOOD.replace("        - step: store\n", ""),
    good=GOOD,
    check=check,
)
