"""NOE124 reports a write to `iter` where there is no iteration."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.shape.parts import Writes, writes
from noetl.dsl.shape import stand_ins
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: pages, path: examples/pages }
workflow:
  - step: pages
    tool:
      - first: { kind: noop, result: { page: 1 }, set: { step.page: "{{ output.data.page }}" } }
      - report: { kind: noop, message: "Page {{ step.page }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    instead = stand_ins(subject.shape)
    for found in writes(subject):
        why = "" if found.step and (id(found.step.at), "loop") in instead else _why(found)
        for assign in found.assigns if why else ():
            if assign.scope == "iter" and assign.at is not None:
                message = f"'iter.{assign.key}' is written where there is no iteration: {why}."
                other = f"step.{assign.key}" if found.place in ("task", "rule") else f"ctx.{assign.key}"
                yield at(assign.at, message, f"Write `{other}`, or give the step a `loop`.")


def _why(found: Writes) -> str:
    """Say why there is no iteration; empty where there is one."""
    if found.step is None:
        return "a task of the workbook does not see its caller's `iter`"
    if found.place in ("step", "arc"):
        return "it ends before the step's `set` and its arcs"
    return "" if found.step.loop else f"step '{found.step.name}' has no loop"


RULE = Rule(
    code="NOE124",
    name="iter-outside-loop",
    group="shape",
    severity="warning",
    summary="A write goes to `iter` where there is no iteration.",
    why="`iter` holds the values of one iteration of a loop and ends with it. Without a loop, and after it, nobody can read "
    "what is written there.",
    fix="Write `step.<name>` for values of one step-run, `ctx.<name>` for values that later steps read.",
    bad=GOOD.replace("step.page", "iter.page"),
    good=GOOD,
    check=check,
)
