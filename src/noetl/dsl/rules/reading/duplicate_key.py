"""NOE003 reports a duplicate key in a map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.reading.nodes import ListNode, MapNode, Node

GOOD = example("""\
workload:
  currency: EUR
workflow:
  - step: report
    tool:
      kind: noop
      message: "Prices in {{ workload.currency }}."
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    step_twice = -1  # the map with two `step` keys: the rest of it is the next step, whose dash is missing
    for problem in subject.document.problems:
        if problem.kind != "duplicate-key":
            continue
        holder = _holder(subject.document.root, problem.start)
        if holder == step_twice:
            continue
        fix = "Keep one of the two keys, or rename one of them."
        if subject.source.text[problem.start : problem.end] == "step":
            step_twice = holder
            fix = "Begin the second step with a dash, `- step: …`, or keep one of the two names."
        yield Finding(problem.start, problem.end, problem.message, fix)


def _holder(node: Node | None, offset: int) -> int:
    """Return the start of the innermost map that covers an offset."""
    start = -1
    while node is not None:
        below: Iterable[Node] = ()
        if isinstance(node, MapNode):
            start, below = node.start, (entry.value for entry in node)
        elif isinstance(node, ListNode):
            below = node.items
        node = next((child for child in below if child.start <= offset < child.end), None)
    return start


RULE = Rule(
    code="NOE003",
    name="duplicate-key",
    severity="error",
    summary="A map has the same key twice.",
    why="A map has one value per key. Other YAML parsers silently drop one of the two, and not always the same one.",
    fix="Keep one of them. Two steps are two items of a list, each with its own `-`.",
    bad=GOOD.replace("  currency: EUR\n", "  currency: EUR\n  currency: USD\n"),
    good=GOOD,
    check=check,
)
