"""Names and nodes of triggers, for the rules about them.

Tested in tests/unit/dsl/rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from noetl.dsl.reading.nodes import MapNode, Node
from noetl.dsl.tree.playbook import Playbook, Trigger
from noetl.schedules.spec import NAME

_MOST: Final = 100  # triggers of one kind


def misnamed(playbook: Playbook, kind: str) -> Iterator[tuple[Trigger, Node, tuple[str, str] | None]]:
    """Yield the triggers of a kind: the node of the name, and what is wrong with it."""
    triggers = [trigger for trigger in playbook.triggers if trigger.kind == kind]
    names = [trigger.name for trigger in triggers]
    word = "trigger" if kind == "ended" else kind
    for index, trigger in enumerate(triggers):
        node = node_of(trigger, kind)
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


def node_of(trigger: Trigger, field: str) -> Node | None:
    """Return the node of a field, as `payload.name`; None if the file has none."""
    found: Node | None = trigger.at
    for part in field.split("."):
        found = found.get(part) if isinstance(found, MapNode) else None
    return found
