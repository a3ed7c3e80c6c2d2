"""NOE115 reports an empty list where an item is required."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import ListNode

GOOD = example("""\
workflow:
  - step: gate
    spec:
      policy:
        admit:
          rules:
            - else: { then: { allow: true } }
    tool: { kind: noop }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind == "empty-list":
            message = f"'{finding.name}' is an empty list; it needs at least one item."
            yield at(finding.node, message, "Add an item, or remove the key if it is optional.")
    for step in subject.playbook.workflow:
        items = step.loop.items if step.loop else None
        if items and isinstance(items.at, ListNode) and not items.at.items:
            message = f"The loop of step '{step.name}' iterates over an empty list, so its pipeline never runs."
            yield at(items.at, message, "Write the items, or a template that returns them.", "warning")


RULE = Rule(
    code="NOE115",
    name="empty-list",
    severity="error",
    summary="A list is empty where at least one item is required.",
    why="A workflow without steps, a pipeline without tasks and a policy without rules do nothing; "
    "a gate without rules would admit no token.",
    fix="Add an item, or remove the key.",
    bad=GOOD.replace("rules:\n            - else: { then: { allow: true } }\n", "rules: []\n"),
    good=GOOD,
    check=check,
)
