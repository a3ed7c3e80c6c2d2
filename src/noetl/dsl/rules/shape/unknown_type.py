"""NOE130 reports a `type` in `workload_schema` that JSON Schema does not have."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.rules.shape.unknown_format import schema_values

GOOD = example("""\
workload: { count: 3 }
executor:
  spec:
    workload_schema:
      properties:
        count: { type: integer }
workflow:
  - step: show
    tool: { kind: noop, message: "{{ workload.count }}" }
""")
_TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
_OTHER_NAMES = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
}
_OTHER_NAMES |= {"dict": "object", "map": "object", "none": "null"}


def check(subject: CheckContext) -> Iterator[Finding]:
    schema = subject.playbook.executor.spec.get("workload_schema")
    for node in schema_values(schema.at if schema else None, "type"):
        if node.text not in _TYPES:
            meant = _OTHER_NAMES.get(node.text.lower())
            hint = f" Did you mean '{meant}'?" if meant else subject.suggestions.did_you_mean(node.text, _TYPES)
            yield at(node, f"JSON Schema has no type '{node.text}'.{hint}", f"Use one of: {', '.join(_TYPES)}.")


RULE = Rule(
    code="NOE130",
    name="unknown-type",
    severity="error",
    summary="The `workload_schema` names a `type` that does not exist.",
    why="The schema is invalid, so no payload can be checked and no execution can start.",
    fix="Use a type of JSON Schema: `integer` for whole numbers, `array` for lists, `object` for maps.",
    bad=GOOD.replace("type: integer", "type: int"),
    good=GOOD,
    check=check,
)
