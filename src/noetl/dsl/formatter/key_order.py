"""Sort the keys of a playbook into canonical order, with their comments.

A map with an unknown key keeps its order. Tested in tests/unit/dsl/formatter/test_key_order.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noetl.dsl.formatter.cst import Collection, Entry, Piece, collections

ROOT: Final = (
    "apiVersion",
    "kind",
    "metadata",
    "keychain",
    "executor",
    "workload",
    "workbook",
    "workflow",
    "policy",
    "triggers",
    "notifications",
)
METADATA: Final = ("name", "path", "version", "description", "labels", "tags")
STEP: Final = ("step", "desc", "spec", "loop", "input", "tool", "set", "next", "compensate")
ARC: Final = ("step", "when", "args", "set", "label", "spec")
TASK_HEAD: Final = ("name", "label", "kind")


def arrange(root: Collection) -> None:
    """Sort the keys of the root, the metadata, the steps, their arcs and their tasks."""
    header = root.entries[0].leading
    if header:  # comments at the top of the file stay there
        first = root.entries[0]
        first.leading = []
        gap, first.after_empty_line = first.after_empty_line, False
        _sort(root, ROOT)
        root.entries[0].leading = header + root.entries[0].leading
        root.entries[0].after_empty_line = gap
    else:
        _sort(root, ROOT)
    metadata = root.get("metadata")
    if isinstance(metadata, Collection):
        _sort(metadata, METADATA)
    for step in collections(root.get("workflow")):
        if step.get("step") is not None:
            _arrange_step(step)


def _arrange_step(step: Collection) -> None:
    _sort(step, STEP)
    following = step.get("next")
    arcs = following.get("arcs") if isinstance(following, Collection) and following.is_map else following
    for arc in collections(arcs):
        _sort(arc, ARC)
    _arrange_tasks(step.get("tool"))


def _arrange_tasks(tool: Piece | None) -> None:
    if not isinstance(tool, Collection):
        return
    for task in [tool] if tool.is_map else collections(tool):
        if task.get("kind") is not None:
            _hoist(task)
        elif len(task.entries) == 1 and isinstance(task.entries[0].value, Collection):
            _hoist(task.entries[0].value)


def _sort(block: Collection, order: tuple[str, ...]) -> None:
    names = [entry.name for entry in block.entries]
    if block.is_map and set(names) <= {*order, "<<"} and _may_move(block):
        _move(block, lambda entry: order.index(entry.name) if entry.name in order else -1)


def _hoist(task: Collection) -> None:
    if task.is_map and task.get("kind") is not None and _may_move(task):
        last = len(TASK_HEAD)
        _move(task, lambda entry: TASK_HEAD.index(entry.name) if entry.name in TASK_HEAD else last)


def _move(block: Collection, rank: Callable[[Entry], int]) -> None:
    first = next(iter(block.entries), None)
    block.entries.sort(key=rank)
    if first is not None and block.entries[0] is not first:  # an empty line above it belonged to the whole map
        opening = first.leading[0] if first.leading else first
        opening.after_empty_line = False


def _may_move(block: Collection) -> bool:
    return not (block.flow and block.has_comments())
