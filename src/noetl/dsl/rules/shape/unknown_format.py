"""NOE129 reports a `format` in `workload_schema` that is not checked."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.value_formats import FORMATS
from noetl.dsl.analysis.workload_schema import keywords
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import ListNode, Node, Scalar

GOOD = example("""\
workload: { since: 2026-01-31 }
executor:
  spec:
    workload_schema:
      properties:
        since: { type: string, format: date }
workflow:
  - step: show
    tool: { kind: noop, message: "{{ workload.since }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    schema = subject.playbook.executor.spec.get("workload_schema")
    for node in schema_values(schema.at if schema else None, "format"):
        if node.text not in FORMATS:
            hint = subject.suggestions.did_you_mean(node.text, FORMATS)
            yield at(
                node,
                f"There is no format '{node.text}', so nothing is checked.{hint}",
                f"Use one of: {', '.join(FORMATS)}; or write a `pattern`.",
            )


def schema_values(node: Node | None, key: str) -> Iterator[Scalar]:
    """Yield the texts under a key of a schema and of the schemas in it."""
    for entry in keywords(node):
        if entry.key.text == key:
            items = entry.value if isinstance(entry.value, ListNode) else (entry.value,)
            yield from (item for item in items if isinstance(item, Scalar))


RULE = Rule(
    code="NOE129",
    name="unknown-format",
    severity="warning",
    summary="The `workload_schema` names a `format` that does not exist.",
    why="JSON Schema ignores a format that it does not know, so the value would be accepted whatever it is.",
    fix="Correct the name, or describe the text with a `pattern`.",
    bad=GOOD.replace("format: date", "format: dat"),
    good=GOOD,
    check=check,
)
