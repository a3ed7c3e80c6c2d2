"""Outline of a playbook. Tested in tests/unit/authoring/features/test_symbols.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from noetl.authoring.analysis.reading import Reading
from noetl.dsl.reading.nodes import Entry, MapNode, Node
from noetl.dsl.tree.playbook import Step, Task

SymbolKind = Literal["section", "step", "task", "key"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """One entry; `start` to `end` is its range, `name_start` to `name_end` its name."""

    name: str
    kind: SymbolKind
    detail: str
    start: int
    end: int
    name_start: int
    name_end: int
    children: tuple[Symbol, ...] = ()


def symbols(reading: Reading) -> tuple[Symbol, ...]:
    """Return the sections of a playbook with their children."""
    root = reading.subject.root
    if root is None:
        return ()
    below = {
        "workflow": _steps(reading),
        "workbook": _tasks(reading.subject.playbook.workbook),
        "workload": _keys(root.get("workload")),
    }
    return tuple(_section(entry, tuple(below.get(entry.key.text, ()))) for entry in root if entry.key.text)


def _section(entry: Entry, children: tuple[Symbol, ...]) -> Symbol:
    key = entry.key
    # An aliased value is located elsewhere.
    end = max(entry.value.end, key.end) if entry.value.start >= key.start else key.end
    return Symbol(
        key.text, "section", "", key.start, _wide(end, children), key.start, key.end, _within(key.start, children)
    )


def _wide(end: int, children: tuple[Symbol, ...]) -> int:
    return max([end, *(child.end for child in children)])


def _within(start: int, children: tuple[Symbol, ...]) -> tuple[Symbol, ...]:
    return tuple(child for child in children if child.start >= start)


def _steps(reading: Reading) -> Iterator[Symbol]:
    for step in reading.subject.playbook.workflow:
        at, name = step.at, step.name_at
        if at is not None and name is not None and at.start <= name.start <= at.end:
            inner = tuple(child for child in _tasks(step.tasks) if at.start <= child.start and child.end <= at.end)
            yield Symbol(step.name, "step", _about(step), at.start, at.end, name.start, name.end, inner)


def _about(step: Step) -> str:
    kinds = ", ".join(dict.fromkeys(task.kind for task in step.tasks))
    return f"{kinds or 'routes'}{' · loop' if step.loop else ''}{' · gate' if step.admit is not None else ''}"


def _tasks(tasks: tuple[Task, ...]) -> Iterator[Symbol]:
    for task in tasks:
        if task.at is None:
            continue
        label = task.label_at
        start = min(task.at.start, label.start) if label else task.at.start
        first, last = (label.start, label.end) if label else (task.at.start, task.at.start)
        yield Symbol(task.label, "task", task.kind, start, max(task.at.end, last), first, last)


def _keys(node: Node | None) -> Iterator[Symbol]:
    for entry in node if isinstance(node, MapNode) else ():
        key = entry.key
        end = max(entry.value.end, key.end) if entry.value.start >= key.start else key.end
        yield Symbol(key.text, "key", "", key.start, end, key.start, key.end)
