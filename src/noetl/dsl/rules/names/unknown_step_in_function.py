"""NOE216 reports `done`, `ok` or `fail` of a step that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.references import ASKED
from noetl.dsl.rule import Found, Rule, inside
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: both, path: examples/both }
workflow:
  - step: start
    next: [left, right]
  - step: left
    tool: { kind: noop }
  - step: right
    tool: { kind: noop }
    next: merge
  - step: merge
    spec:
      policy:
        admit:
          rules:
            - when: "{{ done('left') and done('right') }}"
              then: { allow: true }
    tool: { kind: noop }
"""


def check(subject: Subject) -> Iterator[Found]:
    steps = subject.names.steps
    known = steps | subject.obscured | subject.missing_steps
    for site in subject.sites:
        if site.template is None or "(" not in site.template.source:
            continue
        for call in ASKED.finditer(site.template.source):
            function, name = call["function"], call["step"]
            if name not in known:
                message = (
                    f"`{function}('{name}')` asks for a step that is not in this workflow.{did_you_mean(name, steps)}"
                )
                fix = "Name an existing step; the functions take the name as text."
                yield inside(subject, site, call.start("step"), len(name), message, fix)


RULE = Rule(
    code="NOE216",
    name="unknown-step-in-function",
    group="names",
    severity="error",
    summary="`done`, `ok` or `fail` asks for a step that does not exist.",
    why="The answer is always false. A gate that waits for it never opens, and an arc that asks for it is never taken.",
    fix="Correct the name of the step.",
    bad=GOOD.replace("done('right')", "done('rigth')"),
    good=GOOD,
    check=check,
)
