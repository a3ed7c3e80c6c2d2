"""NOE103 reports a value of another type than its key takes."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.grammar.words import shown, stands, takes
from noetl.dsl.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.scalars import LEGACY_BOOLEANS, resolve
from noetl.dsl.shape import ShapeFinding, fits
from noetl.dsl.subject import Subject
from noetl.dsl.types import Flag, ListOf, Number, Type

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: ping, path: examples/ping }
workflow:
  - step: ping
    tool:
      kind: http
      url: https://example.org/ping
      timeout: 30
"""
_TRUE = frozenset({"yes", "on", "y", "true"})


def check(subject: Subject) -> Iterator[Found]:
    for finding in subject.shape:
        if finding.kind == "wrong-type":
            wanted = _wanted(finding)
            owner = f"An item of '{finding.name}'" if _is_item(finding) else f"'{finding.name}'"
            message = f"{owner} takes {takes(wanted)}; here stands {stands(finding.node)}."
            if finding.name == "":
                message = f"A playbook takes {takes(wanted)}; here stands {stands(finding.node)}."
            yield at(finding.node, message, _fix(finding, wanted))


def _wanted(finding: ShapeFinding) -> Type:
    """Give the whole type of the field where the finding is about its value, and else that of the part in it."""
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
        return ": every item on a line of its own, behind `- `"
    if fits(empty_map, wanted) and not isinstance(node, MapNode):
        return ": keys with their values, indented below"
    return ""


RULE = Rule(
    code="NOE103",
    name="wrong-type",
    group="shape",
    severity="error",
    summary="A value has another type than its key takes.",
    why="A number in quotes is a text, a single item is not a list, and `30s` is no number of seconds: "
    "the run would stop at this place, perhaps an hour after it began.",
    fix="Write a value of the type that the message names.",
    bad=GOOD.replace("timeout: 30", "timeout: 30s"),
    good=GOOD,
    check=check,
)
