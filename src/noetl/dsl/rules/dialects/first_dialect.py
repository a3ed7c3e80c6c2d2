"""NOE801 reports a form of the first dialect: `steps` in order, `type`, `pass`, `action`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.dialects.forms import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: greet, path: examples/greet }
workflow:
  - step: greet
    tool:
      kind: python
      code: |
        result = "Good morning"
"""
BAD = """\
apiVersion: noetl.io/v1
kind: Playbook
metadata: { name: greet, path: examples/greet }
workflow:
  - step: greet
    type: python
    code: |
      result = "Good morning"
"""


def check(subject: Subject) -> Iterator[Found]:
    return told(subject, "v1")


RULE = Rule(
    code="NOE801",
    name="first-dialect",
    group="dialects",
    severity="error",
    summary="A form of the first dialect stands here: `steps`, `type`, `pass`, `action`, `call`.",
    why="In the first dialect steps ran in file order, and a step was its tool. Today a step has a gate, a pipeline and a "
    "router, and its followers are named. The engine runs one form only, so that a playbook means one thing.",
    fix="""Write the form that replaces it:

| first dialect | today |
|---|---|
| `steps:` in order | `workflow:` with `next: <step>` on every step but the last |
| `- name: a` | `- step: a` |
| `type: http`, with its fields on the step | `tool: { kind: http, … }` |
| `type: iterator`, `collection`, `element` | `loop: { in: …, iterator: … }` |
| `pass: "{{ … }}"` | a gate under `spec.policy.admit.rules`, or a `when` on the arc |
| `with: { … }` | `input: { … }`, on an arc `args: { … }` |
| `call: { type: workbook, name: t }` | `tool: { kind: workbook, task: t }` |

The meaning stays the same.""",
    bad=BAD,
    good=GOOD,
    check=check,
)
