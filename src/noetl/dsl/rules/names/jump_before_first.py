"""NOE203 reports a jump to the previous task from the first task of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode
from noetl.dsl.tree.playbook import Task

GOOD = example("""\
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: wait_for_export
    tool:
      - pause: { kind: sleep, seconds: 5 }
      - ask:
          kind: http
          url: "{{ workload.api }}/export"
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
                - when: "{{ outcome.result.data.state == 'running' }}"
                  then: { do: jump, to: previous }
                - else:
                    then: { do: break }
""")
_PAUSE = "      - pause: { kind: sleep, seconds: 5 }\n"


def check(subject: CheckContext) -> Iterator[Finding]:
    firsts = [step.tasks[0] for step in subject.playbook.workflow if step.tasks]
    for task in (*firsts, *subject.playbook.workbook):
        yield from _jumps(task)


def _jumps(task: Task) -> Iterator[Finding]:
    for rule in task.rules or ():
        node = rule.then.at.get("to") if isinstance(rule.then.at, MapNode) else None
        if rule.then.do == "jump" and rule.then.to == "previous" and node is not None:
            message = f"Task '{task.label}' jumps to the previous task, but it is the first task."
            fix = f"Name the target: `to: {task.label}` runs this task again, `do: retry` repeats it after an error."
            yield at(node, message, fix)


RULE = Rule(
    code="NOE203",
    name="jump-before-first",
    severity="error",
    summary="The first task of a pipeline jumps to the previous task.",
    why="`previous` is the task above in the pipeline. The first task has none, so the step-run fails.",
    fix="Name a task by its label, use `do: retry` to repeat the task, or add the task to jump back to above this one.",
    bad=GOOD.replace(_PAUSE, ""),
    good=GOOD,
    check=check,
)
