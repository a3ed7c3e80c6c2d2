"""Rename a step, task or iterator everywhere it is named.

The result is analysed before it is returned: every name must mean the same as before, and no diagnostic may be new.
Otherwise the rename is refused with the reason. Tested in tests/unit/authoring/features/test_rename.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from noetl.authoring.analysis.occurrences import Occurrence, Thing
from noetl.authoring.analysis.reading import Reading
from noetl.authoring.features.definition import occurrences_at
from noetl.dsl.analysis.scopes import LOOP_NAMES, SCOPES, Names
from noetl.dsl.reading.scalars import LEGACY_BOOLEANS, resolve

_WORDS: Final = frozenset(
    {"and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"}
)
_RENAMED: Final = ("step", "task", "iterator")
_TITLES: Final = {
    "workload": "key of the workload", "ctx": "key of ctx", "iter": "key of iter", "scratch": "key of step",
    "input": "input", "workbook": "task of the workbook", "credential": "credential", "edge": "label of an arc",
}  # fmt: skip


class RefusedRename(Exception):  # noqa: N818 - an answer, not a failure
    """The rename would do harm; the message says why and what to do."""


class Edit(NamedTuple):
    """Replacement text for a range."""

    start: int
    end: int
    text: str


class Target(NamedTuple):
    """What would be renamed: its range at the cursor and its name."""

    start: int
    end: int
    thing: Thing


def target(reading: Reading, offset: int) -> Target | None:
    """Return what a rename at this offset renames, or None."""
    for one in occurrences_at(reading, offset):
        if one.thing.kind in _RENAMED and one.spelled and reading.text[one.start : one.end] == one.thing.name:
            return Target(one.start, one.end, one.thing)
    return None


def rename(reading: Reading, offset: int, name: str) -> tuple[Edit, ...]:
    """Return the edits of a rename. Raises RefusedRename if they would do harm."""
    found = target(reading, offset)
    if found is None:
        raise RefusedRename("Nothing to rename here. Place the cursor on a step, task or iterator.")
    thing = found.thing
    if name == thing.name:
        return ()
    before = reading.occurrences
    _check_document(reading, before, thing)
    _check_name(reading.subject.names, thing, name)
    _check_code(reading, thing)
    renamed = _rename_map(reading, thing, name)
    edits = _edits(reading, before, renamed)
    _check_result(reading, before, edits, renamed)
    return edits


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


def _rename_map(reading: Reading, thing: Thing, name: str) -> dict[Thing, Thing]:
    """Return every thing whose name changes, including a label derived from a step's."""
    changes = {thing: thing._replace(name=name)}
    if thing.kind != "step":
        return changes
    for one in reading.occurrences:
        if one.thing.owner == thing.name:
            made = (
                one.thing.kind == "task" and one.defines and not one.spelled and one.thing.name == f"{thing.name}_task"
            )
            label = f"{name}_task" if made else one.thing.name
            if one.thing not in changes or made:
                changes[one.thing] = Thing(one.thing.kind, label, name)
    return changes


def _edits(reading: Reading, before: Iterable[Occurrence], renamed: dict[Thing, Thing]) -> tuple[Edit, ...]:
    edits: dict[tuple[int, int], Edit] = {}
    for one in before:
        new = renamed.get(one.thing, one.thing).name
        if not one.spelled or new == one.thing.name:
            continue
        if reading.text[one.start : one.end] != one.thing.name:
            line = reading.exact.source.position(one.start).line
            raise RefusedRename(
                f"On line {line} the name '{one.thing.name}' is written with escapes. Write it without them first."
            )
        edits[one.start, one.end] = Edit(one.start, one.end, new)
    for one in before:
        if (one.start, one.end) in edits and one.spelled and renamed.get(one.thing, one.thing).name == one.thing.name:
            line = reading.exact.source.position(one.start).line
            also = _TITLES.get(one.thing.kind, one.thing.kind)
            raise RefusedRename(
                f"On line {line} '{one.thing.name}' also names a {also}. Give them different names first."
            )
    return tuple(edits[place] for place in sorted(edits))


def _check_document(reading: Reading, before: Iterable[Occurrence], thing: Thing) -> None:
    if not reading.is_whole:
        raise RefusedRename("This playbook has syntax errors. Fix them first, then rename.")
    places = {(one.start, one.end) for one in before if one.thing == thing and one.defines and one.spelled}
    title = thing.kind
    if not places:
        raise RefusedRename(f"The {title} '{thing.name}' has no definition in this playbook. Add one first.")
    if len(places) > 1:
        raise RefusedRename(f"There are {len(places)} {title}s named '{thing.name}'. Rename one of them by hand first.")


def _check_name(names: Names, thing: Thing, name: str) -> None:
    if not name.isidentifier():
        raise RefusedRename(
            f"'{name}' is not a valid name. Use letters, digits and '_', and do not start with a digit."
        )
    if name in _WORDS or not isinstance(resolve(name), str) or name in LEGACY_BOOLEANS:
        raise RefusedRename(f"'{name}' has another meaning in YAML or in templates. Choose another name.")
    if name in SCOPES or name in LOOP_NAMES:
        raise RefusedRename(f"'{name}' is a reserved name of the language. Choose another name.")
    kind = "task" if thing.kind == "task" else "step"
    if name in (names.labels.get(thing.owner, ()) if kind == "task" else names.steps):
        raise RefusedRename(f"A {kind} named '{name}' already exists. Choose another name.")


def _check_code(reading: Reading, thing: Thing) -> None:
    if thing.kind != "iterator":
        return
    step = reading.subject.playbook.step(thing.owner)
    own = [task for task in step.tasks if task.at is not None] if step else []
    for code in reading.subject.code:
        is_here = code.language == "python" and any(code.task is task for task in own)
        if is_here and re.search(rf"\b{re.escape(thing.name)}\b", code.node.text):
            line = reading.exact.source.position(code.node.start).line
            raise RefusedRename(f"The Python code on line {line} uses '{thing.name}'. Rename it there by hand first.")


def _check_result(
    reading: Reading, before: Iterable[Occurrence], edits: tuple[Edit, ...], renamed: dict[Thing, Thing]
) -> None:
    after = reading.with_text(apply_edits(reading.text, edits))
    old = [(renamed.get(one.thing, one.thing), one.defines, one.spelled) for one in before]
    new = [(one.thing, one.defines, one.spelled) for one in after.occurrences]
    if Counter(old) != Counter(new):
        raise RefusedRename("With this name, some templates would read other data. Choose another name.")
    worse = Counter(one.code for one in after.diagnostics) - Counter(one.code for one in reading.diagnostics)
    if worse:
        first = next(one for one in after.diagnostics if one.code in worse)
        raise RefusedRename(f"This name causes a new diagnostic on line {first.line}: {first.message}")
