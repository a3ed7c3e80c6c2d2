"""NOE103 reports a value of the wrong type."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.shape import ShapeFinding, fits
from noetl.dsl.grammar.types import Flag, ListOf, Number, Type
from noetl.dsl.grammar.wording import shown, stands, takes
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.reading.scalars import LEGACY_BOOLEANS, resolve

GOOD = example("""\
workflow:
  - step: ping
    tool:
      kind: http
      url: https://example.org/ping
      timeout: 30
""")
_TRUE = frozenset({"yes", "on", "y", "true"})


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind == "wrong-type":
            wanted = _wanted(finding)
            owner = f"An item of '{finding.name}'" if _is_item(finding) else f"'{finding.name}'"
            if finding.name == "":
                owner = "A playbook"
            message = f"{owner} takes {takes(wanted)}, not {stands(finding.node)}."
            yield at(finding.node, message, _fix(finding, wanted))


def _wanted(finding: ShapeFinding) -> Type:
    """Return the type of the field, or of the part that the finding is about."""
    if finding.field is not None and not _is_item(finding) and not fits(finding.node, finding.field.type):
        return finding.field.type
    return finding.expected or Type()


def _is_item(finding: ShapeFinding) -> bool:
    kind = finding.field.type if finding.field else None
    return isinstance(kind, ListOf) and finding.expected == kind.item


def _fix(finding: ShapeFinding, wanted: Type) -> str:
    node, name = finding.node, finding.name
    if finding.level.name == "step" and name == "tool" and isinstance(node, Scalar) and node.value is not None:
        return f"Write `tool: {{ kind: {shown(node)} }}`, with the fields of that kind inside."
    if isinstance(node, Scalar) and isinstance(node.value, str):
        if _takes_flag(wanted) and (node.text in LEGACY_BOOLEANS or isinstance(resolve(node.text), bool)):
            return f"Write {'true' if node.text.lower() in _TRUE else 'false'}, without quotes."
        if _takes_number(wanted) and isinstance(resolve(node.text), int | float):
            return f"Write the number without quotes: {node.text}."
    return f"Write {takes(wanted)}{_shape_of(node, wanted)}."


def _takes_flag(wanted: Type) -> bool:
    return fits(Scalar(0, 0, True, "true"), wanted)


def _takes_number(wanted: Type) -> bool:
    return isinstance(wanted, Number) or (fits(Scalar(0, 0, 1, "1"), wanted) and not isinstance(wanted, Flag))


def _shape_of(node: Node, wanted: Type) -> str:
    empty_list, empty_map = ListNode(0, 0, ()), MapNode(0, 0, ())
    if fits(empty_list, wanted) and not isinstance(node, ListNode):
        return ": each item on its own line, after `- `"
    if fits(empty_map, wanted) and not isinstance(node, MapNode):
        return ": keys and values, indented below"
    return ""


RULE = Rule(
    code="NOE103",
    name="wrong-type",
    severity="error",
    summary="A value has the wrong type for its key.",
    why="A number in quotes is text, a single item is not a list, and `30s` is not a number of seconds: "
    "the run would fail here, perhaps an hour after it began.",
    fix="Write a value of the type that the message names.",
    bad=GOOD.replace("timeout: 30", "timeout: 30s"),
    good=GOOD,
    check=check,
)
