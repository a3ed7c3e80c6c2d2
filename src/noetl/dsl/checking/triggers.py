"""Findings about the names and fields of triggers, for the rules about them.

Tested in tests/unit/dsl/rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import msgspec

from noetl.dsl.checking.rule import Finding, at
from noetl.dsl.reading.nodes import MapNode, Node
from noetl.dsl.tree.playbook import NOTIFICATION, OF_THE_START, Playbook, Trigger
from noetl.schedules.spec import NAME, Problem

_MOST: Final = 100  # triggers of one kind
Spec = TypeVar("Spec")


def trigger_findings(
    playbook: Playbook, kind: str, spec: type[Spec], check: Callable[[Spec], object], unless: str = ""
) -> Iterator[Finding]:
    """Yield problems of triggers, `unless` in a field that another rule reports."""
    for trigger, name, misnomer in _misnamed(playbook, kind):
        if misnomer is not None:
            yield at(name, *misnomer)
            continue
        try:
            fields = {key: value.data for key, value in trigger.fields.items() if key not in OF_THE_START}
            check(msgspec.convert(fields, spec))
        except Problem as problem:
            if problem.field != unless:
                place = _node_of(trigger, problem.field) or name
                yield at(place, f"In `{problem.field}`: {problem.what}", problem.fix)
        except msgspec.ValidationError:
            continue  # a wrong key or type, which other rules report


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
    found: Node | None = trigger.at
    for part in field.split("."):
        found = found.get(part) if isinstance(found, MapNode) else None
    return found
