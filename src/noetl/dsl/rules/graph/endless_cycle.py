"""NOE405 reports a cycle of steps that no token can leave."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.net import Edge
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.tree.playbook import Step

GOOD = example("""\
workflow:
  - step: ask
    tool: { kind: http, url: "https://example.org/jobs/7" }
    next:
      arcs:
        - step: report
          when: "{{ ask.data.state == 'ready' }}"
        - step: pause
  - step: pause
    tool: { kind: sleep, seconds: 30 }
    next: ask
  - step: report
    tool: { kind: noop }
""")
BAD = GOOD.replace("        - step: report\n          when: \"{{ ask.data.state == 'ready' }}\"\n", "").replace(
    "  - step: report\n    tool: { kind: noop }\n", ""
)


def check(subject: CheckContext) -> Iterator[Finding]:
    if not subject.net_is_whole or subject.playbook.executor.setting("timeout_s") is not None:
        return
    net = subject.net
    for group in net.cycles():
        members = frozenset(net.steps[number].name for number in group) - {_final(subject)}
        if not members or any(_may_leave(subject, net.steps[number], members) for number in group):
            continue
        back = _closing_edge(net.out, group)
        if back is not None and back.arc.step_at is not None:
            yield at(back.arc.step_at, *_texts([net.steps[number] for number in group]))


def _final(subject: CheckContext) -> str | None:
    return subject.net.steps[subject.net.final].name if subject.net.final is not None else None


def _may_leave(subject: CheckContext, step: Step, members: frozenset[str]) -> bool:
    """Return whether a token at this step may end, wait or leave the cycle."""
    if step.name not in members or isinstance(step.join, int) or subject.flow.admission(step).may_deny:
        return True
    flow = subject.flow
    on_success = flow.ways(step, flow.success(step))
    if on_success.may_be_none:
        return True
    exclusive = step.router is None or step.router.mode == "exclusive"
    if exclusive and any(arc.step not in members for arc in on_success.possible):
        return True
    if not exclusive and not any(arc.step in members for arc in on_success.certain):
        return True
    taken = {id(arc) for arc in on_success.possible}
    failures = (arc for ending in flow.endings(step)[1:] for arc in flow.ways(step, ending).possible)
    return any(arc.step not in members and id(arc) not in taken for arc in failures)


def _closing_edge(out: tuple[tuple[Edge, ...], ...], group: tuple[int, ...]) -> Edge | None:
    inside = frozenset(group)
    edges = (edge for number in group for edge in out[number])
    return next((edge for edge in edges if edge.target in inside and edge.target <= edge.source), None)


def _texts(steps: list[Step]) -> tuple[str, str]:
    names = {step.name for step in steps}
    message = f"Step '{steps[0].name}' leads to itself after every success, so the execution never ends."
    if len(steps) > 1:
        listed = ", ".join(f"'{step.name}'" for step in steps)
        message = f"After every success, the steps {listed} lead to each other, so the execution never ends."
    if any(arc.step not in names for step in steps for arc in step.arcs):
        fix = (
            "Take one arc at a time (`next.spec.mode: exclusive`), and put the arc that leads out first, with a `when`."
        )
    else:
        fix = "Add an arc with a `when` that leads out before this one, or set `executor.spec.timeout_s`."
    return message, fix


RULE = Rule(
    code="NOE405",
    name="endless-cycle",
    severity="error",
    summary="Steps form a cycle that no arc leaves.",
    why=(
        "Such an execution ends only when a step fails, you cancel it, or a step reaches `limits.max_step_runs` (default: "
        "10,000 runs). Until then it occupies workers, and its event log grows."
    ),
    fix=(
        "Add an arc with a condition that leads out to one step of the cycle, before the arc that stays in it. For a cycle "
        "that should run forever, set `executor.spec.timeout_s` and start it on a schedule."
    ),
    bad=BAD,
    good=GOOD,
    check=check,
)
