"""NOE119 reports a loop without exactly one list or cursor to iterate over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.shape import is_template
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar

GOOD = example("""\
workload: { cities: [Oslo, Bergen] }
workflow:
  - step: sweep
    loop: { in: "{{ workload.cities }}", iterator: city }
    tool: { kind: noop, message: "{{ city }}" }
""")
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.\w+|\[[^\]\s]+\])*")


def check(subject: CheckContext) -> Iterator[Finding]:
    instead = subject.stand_ins
    for step in subject.playbook.workflow:
        node = step.loop.at if step.loop else None
        if not isinstance(node, MapNode) or not instead.isdisjoint(((id(node), "in"), (id(node), "cursor"))):
            continue
        cursor, items = node.entry("cursor"), node.get("in")
        if items is not None and cursor:
            message = f"The loop of step '{step.name}' has both `in` and `cursor`, but can use only one of them."
            yield at(cursor.key, message, "Keep `in` for a list, or `cursor` for rows that the loop claims one by one.")
        elif cursor is None and (items is None or (isinstance(items, Scalar) and items.value is None)):
            message = f"The loop of step '{step.name}' has nothing to iterate over."
            yield at(node, message, 'Add `in: "{{ … }}"` with the list, or a `cursor`.')
        elif items is not None and not _may_be_a_list(items):
            message = f"The loop of step '{step.name}' needs a list, but this is not one."
            yield at(items, message, _instead(items))


def _may_be_a_list(node: Node) -> bool:
    if not isinstance(node, Scalar):
        return isinstance(node, ListNode)
    if not isinstance(node.value, str):
        return False
    if is_template(node):
        return True
    try:
        return isinstance(json.loads(node.value), list)
    except (ValueError, RecursionError):
        return False


def _instead(node: Node) -> str:
    if isinstance(node, Scalar) and _PATH.fullmatch(node.text):
        return f'Put it in braces: `in: "{{{{ {node.text} }}}}"`.'
    return 'Write a list, `[a, b]`, or a template that returns one: `in: "{{ … }}"`.'


RULE = Rule(
    code="NOE119",
    name="loop-source",
    severity="error",
    summary="A loop has neither `in` nor `cursor`, has both, or iterates over something that is not a list.",
    why="`in` is a list that is known when the loop begins; a `cursor` claims rows until none is left. "
    "A loop needs exactly one of them.",
    fix='Write `in: "{{ … }}"` for a list, or `cursor: { kind, claim, key }` for rows of a table.',
    bad=GOOD.replace('in: "{{ workload.cities }}", ', ""),
    good=GOOD,
    check=check,
)
