"""NOE124 reports a write to `iter` outside a loop iteration."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.rules.shape.traversal import Writes, writes

GOOD = example("""\
workflow:
  - step: pages
    tool:
      - first: { kind: noop, result: { page: 1 }, set: { step.page: "{{ output.data.page }}" } }
      - report: { kind: noop, message: "Page {{ step.page }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    instead = subject.stand_ins
    for written in writes(subject):
        why = "" if written.step and (id(written.step.at), "loop") in instead else _why(written)
        for assign in written.assigns if why else ():
            if assign.scope == "iter" and assign.at is not None:
                message = f"'iter.{assign.key}' is written outside a loop iteration: {why}."
                other = f"step.{assign.key}" if written.place in ("task", "rule") else f"ctx.{assign.key}"
                yield at(assign.at, message, f"Write `{other}`, or add a `loop` to the step.")


def _why(written: Writes) -> str:
    """Return why there is no iteration; empty where there is one."""
    if written.step is None:
        return "a workbook task cannot access its caller's `iter`"
    if written.place in ("step", "arc"):
        return "iterations end before the step's `set` and its arcs"
    return "" if written.step.loop else f"step '{written.step.name}' has no loop"


RULE = Rule(
    code="NOE124",
    name="iter-outside-loop",
    severity="warning",
    summary="A write targets `iter` outside a loop iteration.",
    why="`iter` holds the values of one loop iteration and ends with it. Without a loop, and after it, no template can "
    "read the value.",
    fix="Write `step.<name>` for values of one step-run, or `ctx.<name>` for values that later steps read.",
    bad=GOOD.replace("step.page", "iter.page"),
    good=GOOD,
    check=check,
)
