"""Arcs: the `then` and `else` of an arc, and the router of groups of arcs.

A rule that leads to several steps takes all of them, so the router is then inclusive, and each arc excludes the rules above
it. Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeGuard

from msgspec import Struct

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.conditions import conjunction, expression_of, negation, template
from noetl.dsl.dialects.lowering.draft import Fields, NoEquivalentError, Record, items_of, plain_name, value, word
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar

_SUCCESS: Final = "event.name != 'step.failed'"


class Group(Struct):
    """Steps that one rule leads to, taken together."""

    when: Node | None
    arcs: list[MapNode]
    at: Node


def targets(node: Node | None) -> Iterator[Node]:
    if isinstance(node, MapNode) and "arcs" in node:
        node = node.get("arcs")
    for item in items_of(node):
        if plain_name(item) is None and not (isinstance(item, MapNode) and "step" in item):
            raise NoEquivalentError(item, "`next` names no step.", "Write `next: [{ step: <name> }]`.")
        yield item


def named(node: Node) -> MapNode:
    if isinstance(node, MapNode):
        return node
    return MapNode(node.start, node.end, (Entry(word("step", node), node),))


def is_arc(node: Node | None) -> TypeGuard[MapNode]:
    """Return whether a `next` is one arc, without a list."""
    return isinstance(node, MapNode) and "arcs" not in node and ("step" in node or "then" in node)


def has_older_arcs(node: Node | None, record: Record) -> bool:
    """Return whether arcs have a `then` or an `else`, or lead to all steps."""
    if _leads_to_all(node, record) and sum(map(_is_free, items_of(node))) > 1:
        return True
    arcs = node.get("arcs") if isinstance(node, MapNode) else node
    return isinstance(arcs, ListNode) and any(
        isinstance(item, MapNode) and ("then" in item or "else" in item) for item in arcs.items
    )


def _leads_to_all(node: Node | None, record: Record) -> bool:
    return record.api == "noetl.io/v1" and isinstance(node, ListNode)


def _is_free(arc: Node) -> bool:
    """Return whether an arc has no condition."""
    return isinstance(arc, MapNode) and "step" in arc and {"when", "then", "else"}.isdisjoint(arc.keys)


def lower_arcs(step: Fields, record: Record) -> None:
    """Write one arc for each step of a `then` or an `else`."""
    following = step.get("next")
    step.put("next", router(list(groups_of(following, record)), following, step.key("next")))


def groups_of(node: Node | None, record: Record) -> Iterator[Group]:
    """Yield the arcs of a `next` in any form, those together that are taken together."""
    before: Group | None = None
    for group in _each_group(node, record):
        if before is not None and before.when is None and group.when is None and _leads_to_all(node, record):
            record.note(by.ALL_ARCS, group.at)
            before.arcs += group.arcs
            continue
        yield from () if before is None else (before,)
        before = group
    yield from () if before is None else (before,)


def _each_group(node: Node | None, record: Record) -> Iterator[Group]:
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return
    if isinstance(node, ListNode) and node.items and all(isinstance(item, Scalar) for item in node.items):
        yield Group(None, [named(item) for item in node.items], node)
        return
    for item in items_of(node.get("arcs") if isinstance(node, MapNode) and "arcs" in node else node):
        if isinstance(item, MapNode) and ("then" in item or "else" in item):
            record.note(by.ARC_THEN, item)
            yield from _branches(item, is_inclusive=_mode(node) == "inclusive")
        elif isinstance(item, MapNode):
            arc = Fields(item)
            when = arc.pop("when").value if "when" in arc else None
            yield Group(when, [arc.built()], item)
        else:
            yield Group(None, [named(item)], item)


def _branches(item: MapNode, *, is_inclusive: bool) -> Iterator[Group]:
    """Yield the arcs of a `then`, and those of an `else`, which is tried after it."""
    when = item.get("when")
    for name in ("then", "else"):
        if name not in item:
            continue
        arcs = [named(target) for target in targets(item.get(name))]
        if not arcs:
            raise NoEquivalentError(item, f"`{name}` names no step.", f"Write `{name}: [{{ step: <name> }}]`.")
        arcs = _with_shared(arcs, item)
        yield Group(when, arcs, item)
        if when is not None and is_inclusive:
            when = value(template(conjunction(_SUCCESS, negation([expression_of(when)]))), when)
        else:
            when = None


def _with_shared(arcs: list[MapNode], item: MapNode) -> list[MapNode]:
    """Return arcs with the fields beside `then` and `else`.

    Those of an arc win, and the first arc alone gets the `set`: all arcs of a rule are taken together.
    """
    made: list[MapNode] = []
    for number, arc in enumerate(arcs):
        fields = Fields(arc)
        for entry in item.entries:
            name = entry.key.text
            if name in ("when", "then", "else") or (number and name in ("set", "set_ctx")):
                continue
            own = fields.get(name)
            if isinstance(own, MapNode) and isinstance(entry.value, MapNode):
                both = Fields(entry.value)
                for one in own.entries:
                    both.add(one)
                fields.put(name, both.built())
            elif own is None:
                fields.add(entry)
        made.append(fields.built())
    return made


def _mode(node: Node | None) -> str | None:
    spec = node.get("spec") if isinstance(node, MapNode) else None
    return plain_name(spec.get("mode")) if isinstance(spec, MapNode) else None


def router(groups: list[Group], before: Node | None, at: Node) -> MapNode:
    """Return the router of groups; inclusive where one leads to several steps."""
    spec = before.get("spec") if isinstance(before, MapNode) else None
    mode = _mode(before)
    several = any(len(group.arcs) > 1 for group in groups)
    arcs: list[Node] = []
    above: list[str] = []
    for group in groups:
        when: Any = group.when
        if several and above and mode != "inclusive":
            own = _SUCCESS if when is None else expression_of(when)
            when = value(template(conjunction(own, negation(above))), group.when or group.at)
        arcs += [_with_condition(arc, when) for arc in group.arcs]
        above.append(_SUCCESS if group.when is None else expression_of(group.when))
    settings = Fields(spec) if isinstance(spec, MapNode) else Fields(MapNode(at.start, at.end, ()))
    if several:
        settings.put("mode", value("inclusive", at), at)
    data: dict[str, Any] = {"spec": settings.built()} if settings.entries else {}
    made = value(data | {"arcs": ListNode(at.start, at.end, tuple(arcs))}, at)
    assert isinstance(made, MapNode)
    return made


def _with_condition(arc: MapNode, when: Node | None) -> MapNode:
    if when is None:
        return arc
    own = arc.get("when")
    if own is not None:
        when = value(template(conjunction(expression_of(when), expression_of(own))), own)
    fields = Fields(arc)
    made: dict[str, Entry] = {}
    for name, entry in fields.entries.items():
        if name != "when":
            made[name] = entry
        if name == "step":
            made["when"] = Entry(word("when", when), when)
    fields.reset(made)
    return fields.built()
