"""NOE001 reports text that is not YAML, or not JSON in a JSON playbook."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.problem import ReadProblem
from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.reading.problems import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: greet, path: examples/greet }
workload:
  greeting: "Good morning: everybody"
workflow:
  - step: greet
    tool:
      kind: noop
      message: "{{ workload.greeting }}"
"""


def _fix(problem: ReadProblem) -> str:
    if "in quotes: " in problem.message:
        return "Put the whole value in quotes."
    return "Correct this place first: what stands below it could not be read."


def check(subject: Subject) -> Iterator[Found]:
    return told(subject, _fix, "syntax")


RULE = Rule(
    code="NOE001",
    name="syntax",
    group="reading",
    severity="error",
    summary="The text is not YAML from this place on.",
    why="Nothing below the mistake can be read, so nothing of it can be checked or run. "
    "The usual causes are a value that begins with `{{` or holds `: ` without quotes, and a line that is indented "
    "by one space too many or too few.",
    fix="Correct the place. Values with templates, colons, `#`, `@` or `*` at their start belong in quotes.",
    bad=GOOD.replace('"Good morning: everybody"', "Good morning: everybody"),
    good=GOOD,
    check=check,
)
