"""Normalize values, writes and names, which occur at every level of the tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar, plain
from noetl.dsl.tree.playbook import Assign, SetScope, Value
from noetl.expr import TemplateError, compile_template

_SCOPES: dict[str, SetScope] = {"ctx": "ctx", "vars": "ctx", "iter": "iter", "step": "step"}
_ORDER: dict[str, int] = {"ctx": 0, "iter": 1, "step": 2}


def canonical_text(text: str, envelope: bool) -> str:
    """Rename `vars` to `ctx`, and the envelope `output` to `outcome`."""
    if "{" not in text or not ("vars" in text or (envelope and "output" in text)):
        return text
    try:
        template = compile_template(text)
    except TemplateError:
        return text
    edits: dict[int, tuple[str, str]] = {}
    for read in template.reads:
        if read.path[0] == "vars":
            edits[read.offsets[0]] = ("vars", "ctx")
        elif envelope and read.path[0] == "output":
            edits[read.offsets[0]] = ("output", "outcome")
            if len(read.path) > 1 and read.path[1] == "data":
                edits[read.offsets[1]] = ("data", "result")
    for offset in sorted(edits, reverse=True):
        old, new = edits[offset]
        if text.startswith(old, offset):
            text = text[:offset] + new + text[offset + len(old) :]
    return text


def canonical_data(node: Node | None, envelope: bool = False) -> Any:
    """Return the plain data of a node, with canonical names in its templates."""
    if isinstance(node, Scalar):
        return canonical_text(node.value, envelope) if isinstance(node.value, str) else node.value
    if isinstance(node, MapNode):
        return {entry.key.text: canonical_data(entry.value, envelope) for entry in node}
    if isinstance(node, ListNode):
        return [canonical_data(item, envelope) for item in node]
    return None


def value(node: Node, envelope: bool = False) -> Value:
    return Value(canonical_data(node, envelope), node)


def optional(node: Node | None, envelope: bool = False) -> Value | None:
    return None if node is None else value(node, envelope)


def values(node: Node | None, envelope: bool = False, without: Iterable[str] = ()) -> dict[str, Value]:
    """Return the entries of a map as values; empty for anything else."""
    if not isinstance(node, MapNode):
        return {}
    left_out = frozenset(without)
    return {entry.key.text: value(entry.value, envelope) for entry in node if entry.key.text not in left_out}


def text(node: Node | None) -> str | None:
    """Return the text of a scalar; None for null and anything else."""
    if isinstance(node, Scalar) and node.value is not None:
        return node.text
    return None


def scalar(node: Node | None) -> Scalar | None:
    return node if isinstance(node, Scalar) else None


def first(node: MapNode, *names: str) -> Node | None:
    """Return the value of the first of these keys that exists."""
    return next((value for name in names if (value := node.get(name)) is not None), None)


def _set_entries(node: Node | None, envelope: bool) -> Iterable[Assign]:
    if not isinstance(node, MapNode):
        return
    for key, target in node:
        head, dot, rest = key.text.partition(".")
        scope = _SCOPES.get(head)
        if scope and dot:
            yield Assign(scope, rest, value(target, envelope), key)
        elif scope and isinstance(target, MapNode):
            for inner_key, inner in target:
                yield Assign(scope, inner_key.text, value(inner, envelope), inner_key)
        else:
            yield Assign("ctx", key.text, value(target, envelope), key)


def _scoped_entries(node: Node | None, scope: SetScope, envelope: bool) -> Iterable[Assign]:
    if isinstance(node, MapNode):
        for key, target in node:
            name = key.text.removeprefix(f"{scope}.")
            yield Assign(scope, name, value(target, envelope), key)


def assigns(node: MapNode, envelope: bool) -> tuple[Assign, ...]:
    """Collect `set`, `set_ctx` and `set_iter` of a map, ordered by scope."""
    writes = [
        *_scoped_entries(node.get("set_ctx"), "ctx", envelope),
        *_scoped_entries(node.get("set_iter"), "iter", envelope),
        *_set_entries(node.get("set"), envelope),
    ]
    return tuple(sorted(writes, key=lambda assign: _ORDER[assign.scope]))


def plain_text(node: Node | None) -> str:
    data = plain(node)
    return data if isinstance(data, str) else ""
