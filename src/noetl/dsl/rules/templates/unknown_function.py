"""NOE305 reports a call of a function that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.templates.reporting import problems
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: stamp, path: examples/stamp }
workflow:
  - step: stamp
    tool: { kind: noop, result: { id: "{{ gen_uuid() }}" } }
"""


def check(subject: Subject) -> Iterator[Found]:
    yield from problems(
        subject, "function", "Call a function that exists: `now()`, `gen_uuid()`, `range()`, `done('step')`, …"
    )


RULE = Rule(
    code="NOE305",
    name="unknown-function",
    group="templates",
    severity="error",
    summary="A template calls a function that does not exist.",
    why=(
        "Only the functions of the language can be called: templates see plain data, and a value is never a function. "
        "Much of what is a function elsewhere is a filter here: `len(x)` is `x | length`."
    ),
    fix="Correct the name, or use the filter of that name.",
    bad=GOOD.replace("gen_uuid()", "uuid4()"),
    good=GOOD,
    check=check,
)
