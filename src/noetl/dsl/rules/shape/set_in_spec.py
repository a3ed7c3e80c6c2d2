"""NOE110 reports a write (`set`) that stands under `spec`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: count, path: examples/count }
workflow:
  - step: count
    tool: { kind: noop, result: { total: 3 } }
    set: { ctx.total: "{{ output.data.total }}" }
    next: report
  - step: report
    tool: { kind: noop, message: "{{ ctx.total }}" }
"""
_BESIDE = {
    "step_spec": "the step, beside `tool`",
    "task_spec": "the task, beside `kind`",
    "loop_spec": "the step, beside `loop`",
    "arc_spec": "the arc, beside `step`",
    "next_spec": "an arc, beside its `step`",
    "executor_spec": "the first step, or give the value a default under `workload`",
}


def check(subject: Subject) -> Iterator[Found]:
    for finding in subject.shape:
        if finding.kind == "set-in-spec":
            level = finding.level.name.partition(":")[0]
            message = f"'{finding.name}' stands under `spec`, which holds settings and never writes."
            yield at(finding.node, message, f"Move it one level up: to {_BESIDE[level]}.")


RULE = Rule(
    code="NOE110",
    name="set-in-spec",
    group="shape",
    severity="error",
    summary="A write (`set`, `set_ctx`, `set_iter`) stands under `spec`.",
    why="`spec` holds settings, which are layered from the executor down to the task. A write is an act that happens once, "
    "at a moment of the run; under `spec` it would never happen.",
    fix="Put `set` on the step, the task, the arc, or beside `do` in a task rule.",
    bad=GOOD.replace(
        '    set: { ctx.total: "{{ output.data.total }}" }',
        '    spec: { set: { ctx.total: "{{ output.data.total }}" } }',
    ),
    good=GOOD,
    check=check,
)
