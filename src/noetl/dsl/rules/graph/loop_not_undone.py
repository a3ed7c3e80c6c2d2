"""NOE417 reports a loop with a compensation that does not run where one of its items fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from noetl.dsl.playbook import Step, Value
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: seats, path: examples/seats }
policy: { rollback: on_fail }
workload: { people: [ada, ben] }
workflow:
  - step: reserve
    loop:
      in: "{{ workload.people }}"
      iterator: person
      spec: { policy: { failure: { mode: best_effort } } }
    tool: { kind: noop, result: "{{ iter.person }}" }
    compensate: give_back
    next: pay
  - step: pay
    tool: { kind: noop }
  - step: give_back
    tool: { kind: noop, result: "{{ reserve.results }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    playbook = subject.playbook
    if playbook.rollback != "on_fail":
        return
    for step in playbook.workflow:
        if step.loop is None or step.compensate is None or step.compensate_at is None:
            continue
        if not any(_mode(spec) is not None for spec in (step.loop.spec, step.spec, playbook.executor.spec)):
            yield at(step.compensate_at, *_told(step))


def _mode(spec: Mapping[str, Value]) -> Any:
    """Give what a `spec` says of failed items; None where it says nothing, or that the loop fails with them."""
    found: Any = spec["policy"].data if "policy" in spec else None
    for key in ("failure", "mode"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return None if found == "fail_fast" else found


def _told(step: Step) -> tuple[str, str]:
    message = (
        f"Where an item of '{step.name}' fails, the loop fails too, and '{step.compensate}' does not run: "
        "the items that had succeeded are not undone."
    )
    fix = (
        "Let the loop end whatever fails, with `loop.spec.policy.failure.mode: best_effort`, "
        "and let the next step fail where `stats.failed` is not 0."
    )
    return message, fix


RULE = Rule(
    code="NOE417",
    name="loop-not-undone",
    group="graph",
    severity="warning",
    summary="A loop has a compensation that does not run where one of its items fails.",
    why=(
        "Only step-runs that completed are compensated. A loop that stops at its first failed item did not complete, though "
        "its earlier items took effect."
    ),
    fix="Use `failure.mode: best_effort` on the loop, and fail in the step after it; or undo within the pipeline of an item.",
    bad=GOOD.replace("      spec: { policy: { failure: { mode: best_effort } } }\n", ""),
    good=GOOD,
    check=check,
)
