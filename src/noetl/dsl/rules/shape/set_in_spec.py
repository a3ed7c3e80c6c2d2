"""NOE110 reports a write (`set`) under `spec`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example

GOOD = example("""\
workflow:
  - step: count
    tool: { kind: noop, result: { total: 3 } }
    set: { ctx.total: "{{ output.data.total }}" }
    next: report
  - step: report
    tool: { kind: noop, message: "{{ ctx.total }}" }
""")
_BESIDE = {
    "step_spec": "the step, next to `tool`",
    "task_spec": "the task, next to `kind`",
    "loop_spec": "the step, next to `loop`",
    "arc_spec": "the arc, next to `step`",
    "next_spec": "an arc, next to its `step`",
    "executor_spec": "the first step, or declare the value with a default under `workload`",
}


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind == "set-in-spec":
            level = finding.level.name.partition(":")[0]
            message = f"'{finding.name}' is under `spec`, which holds settings, not writes."
            yield at(finding.node, message, f"Move it one level up: to {_BESIDE[level]}.")


RULE = Rule(
    code="NOE110",
    name="set-in-spec",
    severity="error",
    summary="A write (`set`, `set_ctx`, `set_iter`) is under `spec`.",
    why="`spec` holds settings, which are layered from the executor down to the task. A write happens at one point of the "
    "run; under `spec` it would never happen.",
    fix="Put `set` on the step, the task or the arc, or next to `do` in a task rule.",
    bad=GOOD.replace(
        '    set: { ctx.total: "{{ output.data.total }}" }',
        '    spec: { set: { ctx.total: "{{ output.data.total }}" } }',
    ),
    good=GOOD,
    check=check,
)
