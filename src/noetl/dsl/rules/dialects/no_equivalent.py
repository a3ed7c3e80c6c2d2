"""NOE803 reports an older form that cannot be lowered."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.dialects.forms import refused

GOOD = example("""\
workflow:
  - step: load
    tool: { kind: shell, command: "echo ready" }
""")

RULE = Rule(
    code="NOE803",
    name="no-equivalent",
    severity="error",
    summary="A form of an older dialect has no equivalent today, or lacks what it needs.",
    why="Older forms run unchanged because each is read as the canonical form with the same meaning. Where there is none, "
    "NoETL does not guess.",
    fix="Write what the message says. [Older dialects](../dialects/README.md) lists every form and what it becomes.",
    bad=GOOD.replace('tool: { kind: shell, command: "echo ready" }', 'command: "echo ready"'),
    good=GOOD,
    check=refused,
)
