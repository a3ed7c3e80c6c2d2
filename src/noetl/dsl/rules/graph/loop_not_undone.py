"""NOE417 reports a loop whose compensation does not run when an item fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.tree.playbook import Step, Value

GOOD = example("""\
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
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    playbook = subject.playbook
    if playbook.rollback != "on_fail":
        return
    for step in playbook.workflow:
        if step.loop is None or step.compensate is None or step.compensate_at is None:
            continue
        if not any(_mode(spec) is not None for spec in (step.loop.spec, step.spec, playbook.executor.spec)):
            yield at(step.compensate_at, *_texts(step))


def _mode(spec: Mapping[str, Value]) -> Any:
    """Return the failure mode of a `spec`; None without one and for `fail_fast`."""
    setting: Any = spec["policy"].data if "policy" in spec else None
    for key in ("failure", "mode"):
        setting = setting.get(key) if isinstance(setting, Mapping) else None
    return None if setting == "fail_fast" else setting


def _texts(step: Step) -> tuple[str, str]:
    message = (
        f"If an item of '{step.name}' fails, the loop fails too, and '{step.compensate}' does not run: "
        "the items that succeeded are not undone."
    )
    fix = (
        "Run all items with `loop.spec.policy.failure.mode: best_effort`, "
        "and fail in the next step if `stats.failed` is not 0."
    )
    return message, fix


RULE = Rule(
    code="NOE417",
    name="loop-not-undone",
    severity="warning",
    summary="A loop has a compensation that does not run when an item fails.",
    why=(
        "Only completed step-runs are compensated. A loop that stops at its first failed item did not complete, although "
        "its earlier items took effect."
    ),
    fix="Use `failure.mode: best_effort` on the loop, and fail in the step after it; or undo the work in the pipeline of each item.",
    bad=GOOD.replace("      spec: { policy: { failure: { mode: best_effort } } }\n", ""),
    good=GOOD,
    check=check,
)
