"""NOE801 reports forms of the first dialect, such as `steps` or `type`."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.dialects.forms import dialect_check

GOOD = example("""\
workflow:
  - step: greet
    tool:
      kind: python
      code: |
        result = "Good morning"
""")
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

RULE = Rule(
    code="NOE801",
    name="first-dialect",
    severity="hint",
    summary="The playbook has forms of the first dialect: `steps`, `type`, `pass`, `action` or `call`.",
    why="In the first dialect, steps ran in file order and a step was its tool. Now a step has a gate, a pipeline and a "
    "router that names the next steps. NoETL reads the older form and runs it unchanged.",
    fix="""Run `noetl upgrade FILE`, or leave the file as it is:

| first dialect | now |
|---|---|
| `steps:` in order | `workflow:` with `next: <step>` on every step except the last |
| `- name: a` | `- step: a` |
| `type: http`, with its fields on the step | `tool: { kind: http, … }` |
| `type: iterator`, `collection`, `element` | `loop: { in: …, iterator: … }` |
| `pass: "{{ … }}"` | a gate under `spec.policy.admit.rules`, or a `when` on the arc |
| `with: { … }` | `input: { … }`, on an arc `args: { … }` |
| `call: { type: workbook, name: t }` | `tool: { kind: workbook, task: t }` |

The meaning is the same.""",
    bad=BAD,
    good=GOOD,
    check=dialect_check("v1"),
)
