"""NOE308 reports a template that reaches for Python instead of data."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.templates.reporting import problems
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: types, path: examples/types }
workload: { value: 1 }
workflow:
  - step: look
    tool: { kind: noop, message: "{{ workload.value is number }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    yield from problems(subject, "attribute", "Look up a key of your data instead, or do the work in a python task.")


RULE = Rule(
    code="NOE308",
    name="python-attribute",
    group="templates",
    severity="error",
    summary="A template asks for an attribute of a Python object.",
    why="Templates see plain data: text, numbers, lists, maps. Behind a dot stands a key, never something of Python.",
    fix="Use a test such as `is number`, a filter, or a python task.",
    bad=GOOD.replace("workload.value is number", "workload.value.__class__"),
    good=GOOD,
    check=check,
)
