"""NOE115 reports a list without an item where one is needed."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import ListNode
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: gate, path: examples/gate }
workflow:
  - step: gate
    spec:
      policy:
        admit:
          rules:
            - else: { then: { allow: true } }
    tool: { kind: noop }
"""


def check(subject: Subject) -> Iterator[Found]:
    for finding in subject.shape:
        if finding.kind == "empty-list":
            message = f"'{finding.name}' is an empty list; it needs at least one item."
            yield at(finding.node, message, "Add an item, or remove the key if it may be left out.")
    for step in subject.playbook.workflow:
        items = step.loop.items if step.loop else None
        if items and isinstance(items.at, ListNode) and not items.at.items:
            message = f"The loop of step '{step.name}' goes over an empty list, so its pipeline never runs."
            yield at(items.at, message, "Write the items, or a template that gives them.", "warning")


RULE = Rule(
    code="NOE115",
    name="empty-list",
    group="shape",
    severity="error",
    summary="A list is empty where at least one item is needed.",
    why="A workflow without steps, a pipeline without tasks and a policy without rules do nothing; "
    "a gate without rules would keep every token out.",
    fix="Add an item, or remove the key.",
    bad=GOOD.replace("rules:\n            - else: { then: { allow: true } }\n", "rules: []\n"),
    good=GOOD,
    check=check,
)
