"""NOE303 reports a filter that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.templates.reporting import problems
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workload: { who: world }
workflow:
  - step: greet
    tool: { kind: noop, message: "{{ workload.who | upper }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    yield from problems(
        subject,
        "filter",
        "Use a filter of the language, such as `default`, `join`, `length`, `map`, `round` or `tojson`.",
    )


RULE = Rule(
    code="NOE303",
    name="unknown-filter",
    group="templates",
    severity="error",
    summary="A template uses a filter that does not exist.",
    why="The template fails as soon as it is evaluated.",
    fix="Correct the name. Filters that give another value each time, or that reach into Python, do not exist on purpose.",
    bad=GOOD.replace("| upper", "| uper"),
    good=GOOD,
    check=check,
)
