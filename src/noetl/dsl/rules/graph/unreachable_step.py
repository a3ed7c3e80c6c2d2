"""NOE401 reports a step that no token can ever come to."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.graph.stranded import stranded
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workflow:
  - step: fetch
    tool: { kind: noop }
    next: store
  - step: store
    tool: { kind: noop }
"""


def check(subject: Subject) -> Iterator[Found]:
    net = subject.net
    for number, cause in stranded(subject).items():
        step = net.steps[number]
        if cause is not None or step.name_at is None:
            continue
        behind = net.reach[number] & ~(1 << number) & ~net.live()
        if all(edge.source == number for edge in net.into[number]):
            message = f"Step '{step.name}' never runs: no arc leads to it, and it is not the entry."
        else:
            message = f"Step '{step.name}' never runs: only steps that never run themselves lead to it."
        if behind:
            message += f" The same holds for {', '.join(repr(other.name) for other in net.members(behind))} behind it."
        yield at(
            step.name_at,
            message,
            f"Lead an arc to it (`next: {step.name}` on the step before), or remove it.",
        )


RULE = Rule(
    code="NOE401",
    name="unreachable-step",
    group="graph",
    severity="warning",
    summary="A step can never run: no path of arcs leads from the entry to it.",
    why="Work that somebody wrote down is left out of every run, and nothing says so. Most often an arc was forgotten.",
    fix="Add the missing arc, name the step as the entry, the final step or a compensation, or remove it.",
    bad=GOOD.replace("    next: store\n", ""),
    good=GOOD,
    check=check,
)
