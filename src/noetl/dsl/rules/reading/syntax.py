"""NOE001 reports a YAML syntax error, or a JSON syntax error in a JSON playbook."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.reading.problems import ReadProblem
from noetl.dsl.rules.reading.problems import problem_check

GOOD = example("""\
workload:
  greeting: "Good morning: team"
workflow:
  - step: greet
    tool:
      kind: noop
      message: "{{ workload.greeting }}"
""")


def _fix(problem: ReadProblem) -> str:
    if "in quotes: " in problem.message:
        return "Put the whole value in quotes."
    return problem.fix or "Correct this position first: the text below it was not read."


RULE = Rule(
    code="NOE001",
    name="syntax",
    severity="error",
    summary="The text is not valid YAML from this position on.",
    why="Nothing below the error can be parsed, so it cannot be checked or run. "
    "Common causes are an unquoted value that begins with `{{` or contains `: `, and a line that is indented "
    "by one space too many or too few.",
    fix="Correct the line. Quote values that begin with a template, `#`, `@` or `*`, or that contain a colon.",
    bad=GOOD.replace('"Good morning: team"', "Good morning: team"),
    good=GOOD,
    check=problem_check("syntax", fix=_fix),
)
