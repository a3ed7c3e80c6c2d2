"""Find the code that a playbook embeds: SQL, shell commands and Python.

The types of the tool kinds say which fields hold code. Tested in tests/unit/dsl/analysis/test_embedded_code.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.grammar.types import Level, LevelOf, ListOf, MapOf, OneOf, Text, Type, fits
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.tree.playbook import Playbook, Task, Value


class Code(Struct, frozen=True, eq=False):
    """One piece of code and its position."""

    language: str  # sql, shell or python
    node: Scalar
    field: str
    task: Task | None = None  # None for the claim of a cursor


def code(playbook: Playbook, kinds: Kinds) -> tuple[Code, ...]:
    """Return all code of a playbook, part by part in file order."""
    parts: list[Code] = []
    for task in playbook.workbook:
        parts.extend(_of_task(task, kinds))
    for step in playbook.workflow:
        if step.loop and step.loop.cursor:
            parts.extend(_of_fields(step.loop.cursor, LEVELS["cursor"], None))
        for task in step.tasks:
            parts.extend(_of_task(task, kinds))
    return tuple(parts)


def _of_task(task: Task, kinds: Kinds) -> Iterator[Code]:
    kind = kinds.get(task.kind)
    if kind is not None:
        yield from _of_fields(task.fields, kind.input, task)


def _of_fields(values: dict[str, Value], level: Level, task: Task | None) -> Iterator[Code]:
    for name, value in values.items():
        known = level.field(name)
        if known is not None and value.at is not None:
            for node, language in _below(value.at, known.type):
                yield Code(language, node, name, task)


def _below(node: Node, kind: Type) -> Iterator[tuple[Scalar, str]]:
    match kind:
        case Text(language):
            if language and isinstance(node, Scalar) and node.is_string:
                yield node, language
        case ListOf(item):
            for element in node.items if isinstance(node, ListNode) else ():
                yield from _below(element, item)
        case MapOf(inner):
            for entry in node if isinstance(node, MapNode) else ():
                yield from _below(entry.value, inner)
        case LevelOf(_, Level() as own):
            for entry in node if isinstance(node, MapNode) else ():
                known = own.field(entry.key.text)
                if known is not None:
                    yield from _below(entry.value, known.type)
        case OneOf(options):
            chosen = next((option for option in options if fits(node, option)), None)
            if chosen is not None:
                yield from _below(node, chosen)
