"""NOE131 reports a part of `workload_schema` that cannot be checked safely."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.workload_schema import MOST_PARTS, UNSUPPORTED, count_parts, keywords, pattern_problem
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import Entry, MapNode, Scalar

GOOD = example("""\
workload: { order: A-17 }
executor:
  spec:
    workload_schema:
      properties:
        order: { $ref: "#/$defs/order" }
      $defs:
        order: { type: string, pattern: "^[A-Z]-[0-9]+$" }
workflow:
  - step: show
    tool: { kind: noop, message: "{{ workload.order }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    schema = subject.playbook.executor.spec.get("workload_schema")
    if schema is None or schema.at is None:
        return
    if count_parts(schema.data, MOST_PARTS) > MOST_PARTS:
        message = f"The schema has more than {MOST_PARTS:,} maps and lists."
        yield at(schema.at, message, "Describe fewer values, or use `$defs` for what repeats.")
        return
    for entry in keywords(schema.at):
        yield from _of_keyword(entry)


def _of_keyword(entry: Entry) -> Iterator[Finding]:
    name, value = entry.key.text, entry.value
    if name in UNSUPPORTED:
        yield at(entry.key, f"`{name}` is not checked.", "Use `additionalProperties`, `prefixItems` or `items`.")
    elif name in ("$ref", "$dynamicRef") and isinstance(value, Scalar) and not value.text.startswith("#"):
        message = f"The reference '{value.text}' leads out of the schema. NoETL loads no other schema."
        yield at(value, message, "Put the definition under `$defs`, and refer to it with `#/$defs/<name>`.")
    elif name == "pattern" and isinstance(value, Scalar) and value.is_string:
        yield from _of_pattern(value)
    elif name == "patternProperties" and isinstance(value, MapNode):
        for one in value:
            yield from _of_pattern(one.key)


def _of_pattern(node: Scalar) -> Iterator[Finding]:
    problem = pattern_problem(node.text)
    if problem is not None:
        fix = "Write a pattern without look-around and back-references, of at most 1,000 characters."
        yield at(node, f"The pattern cannot be used: {problem}.", fix)


RULE = Rule(
    code="NOE131",
    name="unsafe-schema",
    severity="error",
    summary="The `workload_schema` has a part that cannot be checked safely.",
    why=(
        "Each start checks the payload on the server. Patterns therefore run on RE2, whose time grows with the text only; it "
        "has no look-around and no back-references. A reference leads to the schema itself, never to a file or a host."
    ),
    fix="Use patterns of RE2, keep definitions under `$defs`, and leave out `unevaluatedProperties` and `unevaluatedItems`.",
    bad=GOOD.replace('"#/$defs/order"', '"http://example.org/order.json"'),
    good=GOOD,
    check=check,
)
