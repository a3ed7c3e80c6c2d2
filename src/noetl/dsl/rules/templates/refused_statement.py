"""NOE307 reports a statement that templates do not have."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.templates.reporting import problems
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: list, path: examples/list }
workload: { names: [Ada, Max] }
workflow:
  - step: write
    tool:
      kind: noop
      message: "{% for name in workload.names %}{{ name }} {% endfor %}"
"""


def check(subject: Subject) -> Iterator[Found]:
    yield from problems(subject, "statement", "Use `if`, `for` or `set`, or do the work in a python task.")


RULE = Rule(
    code="NOE307",
    name="refused-statement",
    group="templates",
    severity="error",
    summary="A template uses a statement that is not part of the language.",
    why="Templates make values. Including files, defining macros and the like would make them programs that nobody can check.",
    fix="Use `{% if %}`, `{% for %}` and `{% set %}`; put anything larger into a python task.",
    bad=GOOD.replace(
        '"{% for name in workload.names %}{{ name }} {% endfor %}"', "\"{% include 'names.txt' %}{{ workload.names }}\""
    ),
    good=GOOD,
    check=check,
)
