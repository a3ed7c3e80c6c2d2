"""Findings about the names and fields of triggers, for the rules about them.

Tested in tests/unit/dsl/rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, at
from noetl.dsl.grammar.wording import stands
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.tree.playbook import NOTIFICATION, OF_THE_START, Playbook, Trigger
from noetl.schedules.spec import NAME, Problem

_MOST: Final = 100  # triggers of one kind
_INSIDE: Final = re.compile(r"[^.\[\]$]+")  # parts of a place such as `$.dates[0]`
_WORDS: Final = {"object": "a map", "array": "a list", "int": "a whole number or text"}  # what msgspec expects
Spec = TypeVar("Spec", bound=msgspec.Struct)


class _Dispatch(msgspec.Struct, frozen=True):
    playbook: str
    version: int | None = None


class _Start(msgspec.Struct, frozen=True):
    """Types of the fields in `OF_THE_START`."""

    dispatch: _Dispatch


def trigger_findings(
    subject: CheckContext, kind: str, spec: type[Spec], check: Callable[[Spec], object], unless: str = ""
) -> Iterator[Finding]:
    """Yield problems of triggers, `unless` in a field that another rule reports."""
    reported = {id(finding.node) for finding in subject.every_finding}
    for trigger, name, misnomer in _misnamed(subject.playbook, kind):
        if misnomer is not None:
            yield at(name, *misnomer)
            continue
        given = {key: value.data for key, value in trigger.fields.items()}
        try:
            yield from _mistyped(trigger, given, spec, reported)
            check(msgspec.convert({key: data for key, data in given.items() if key not in OF_THE_START}, spec))
        except Problem as problem:
            if problem.field != unless:
                place = _node_of(trigger, problem.field) or name
                yield at(place, f"In `{problem.field}`: {problem.what}", problem.fix)
        except msgspec.ValidationError:
            continue  # a wrong key or type, reported above or by other rules


def _mistyped(trigger: Trigger, given: Mapping[str, Any], spec: type[Spec], reported: set[int]) -> Iterator[Finding]:
    """Yield scalars that the grammar accepts and the trigger cannot hold."""
    types = {one.name: one.type for one in (*msgspec.structs.fields(spec), *msgspec.structs.fields(_Start))}
    for field, data in given.items():
        try:
            msgspec.convert(data, types.get(field, Any))
        except msgspec.ValidationError as error:
            wanted, _, place = str(error).partition(" - at ")
            parts = [field, *_INSIDE.findall(place.strip("`"))]
            node = _inside(trigger.at, parts)
            if isinstance(node, Scalar) and id(node) not in reported:
                name = next(part for part in reversed(parts) if not part.isdigit())
                yield _wrong_type(name, node, wanted.partition(", got ")[0])


def _wrong_type(name: str, node: Scalar, wanted: str) -> Finding:
    takes = next((words for word, words in _WORDS.items() if word in wanted), "text")
    fix = f"Write {takes}."
    if node.value is None:
        fix = f"Write {takes}, or remove the key."
    elif takes == "text":
        fix = f'Write it in quotes: "{node.text}".'
    return at(node, f"'{name}' takes {takes}, not {stands(node)}.", fix)


def _misnamed(playbook: Playbook, kind: str) -> Iterator[tuple[Trigger, Node, tuple[str, str] | None]]:
    """Yield the triggers of a kind: the node of the name, and what is wrong with it."""
    triggers = [trigger for trigger in playbook.triggers if trigger.kind == kind]
    names = [trigger.name for trigger in triggers]
    word = "trigger" if kind == "ended" else kind
    for index, trigger in enumerate(triggers):
        node = _node_of(trigger, "name" if kind == NOTIFICATION else kind)
        if node is None:
            continue
        problem = None
        if not re.fullmatch(NAME, trigger.name):
            problem = (f"'{trigger.name}' is no name of a {word}.", "Write letters, digits, `.`, `_` and `-`.")
        elif trigger.name in names[:index]:
            problem = (f"There are two {word}s '{trigger.name}'.", "Give each its own name.")
        elif index >= _MOST:
            problem = (f"A playbook has at most {_MOST} {word}s.", "Remove some, or write another playbook.")
        yield trigger, node, problem


def _node_of(trigger: Trigger, field: str) -> Node | None:
    """Return the node of a field, as `payload.name`; None if the file has none."""
    return _inside(trigger.at, field.split("."))


def _inside(node: Node | None, parts: Iterable[str]) -> Node | None:
    """Return the node at keys and item numbers inside another, or None."""
    for part in parts:
        if isinstance(node, ListNode) and part.isdigit() and int(part) < len(node.items):
            node = node.items[int(part)]
        else:
            node = node.get(part) if isinstance(node, MapNode) else None
    return node
