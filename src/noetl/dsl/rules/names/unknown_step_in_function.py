"""NOE216 reports `done`, `ok` or `fail` with a step that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.references import ASKED
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example, inside

GOOD = example("""\
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
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    steps = subject.names.steps
    known = steps | subject.obscured | subject.missing_steps
    for site in subject.sites:
        if site.template is None or "(" not in site.template.source:
            continue
        for call in ASKED.finditer(site.template.source):
            function, name = call["function"], call["step"]
            if name not in known:
                message = f"`{function}('{name}')` names a step that is not in this workflow.{subject.suggestions.did_you_mean(name, steps)}"
                fix = "Name an existing step; the function takes the name as text."
                yield inside(subject, site, call.start("step"), len(name), message, fix)


RULE = Rule(
    code="NOE216",
    name="unknown-step-in-function",
    severity="error",
    summary="`done`, `ok` or `fail` names a step that does not exist.",
    why="The function always returns false. A gate that waits for it never opens, and an arc with it is never taken.",
    fix="Correct the name of the step.",
    bad=GOOD.replace("done('right')", "done('rigth')"),
    good=GOOD,
    check=check,
)
