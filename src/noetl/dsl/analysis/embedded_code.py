"""Find the code that a playbook embeds: SQL, shell commands and Python.

The types of the tool kinds say which fields hold code. Tested in tests/unit/dsl/analysis/test_embedded_code.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.grammar.types import Level, LevelOf, ListOf, MapOf, OneOf, Text, Type, fits
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar, Source
from noetl.dsl.reading.source_map import locate
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


def file_line(source: Source, playbook: Playbook, step: str, task: str, line: int, begins: str) -> int | None:
    """Return the file's line for a line of a task's Python code that begins so.

    `task` is the label in events; inside of workbook calls, those of the calls and slashes stand before it. A call has the
    error of the task that it calls.
    """
    calls, _, label = task.rpartition("/")
    own = playbook.step(step)
    found = _labelled(playbook.workbook if calls else own.tasks if own is not None else (), label)
    seen = set[str]()
    while found is not None and found.kind == "workbook" and found.label not in seen:
        seen.add(found.label)
        found = _labelled(playbook.workbook, found.fields["task"].data if "task" in found.fields else found.label)
    node = None if found is None else _python(found)
    lines = node.text.split("\n") if node is not None else []
    if node is None or not 1 <= line <= len(lines) or not lines[line - 1].lstrip().startswith(begins):
        return None
    before = sum(len(one) + 1 for one in lines[: line - 1])
    indent = len(lines[line - 1]) - len(lines[line - 1].lstrip())
    return source.position(locate(source, node, before + indent)).line


def _labelled(tasks: tuple[Task, ...], label: object) -> Task | None:
    return next((one for one in tasks if one.label == label), None)


def _python(task: Task) -> Scalar | None:
    """Return the scalar of a task's Python code: `code`, or `script.content`."""
    value, script = task.fields.get("code"), task.fields.get("script")
    node = value.at if value is not None else None
    if node is None and script is not None and isinstance(script.at, MapNode):
        node = script.at.get("content")
    return node if isinstance(node, Scalar) else None


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
