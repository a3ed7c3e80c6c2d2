"""Renames a step, a task or an iterator everywhere it is named, and nothing else.

The new text is read again before it is given away: every name must stand for the same thing as before, and no diagnostic may
be new. Otherwise the rename is refused with the reason. Tested in tests/unit/lsp/test_rename.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from noetl.dsl.scalars import LEGACY_BOOLEANS, resolve
from noetl.dsl.scopes import LOOP_NAMES, SCOPES, Names
from noetl.lsp.definition import things_at
from noetl.lsp.reading import Reading
from noetl.lsp.things import Occurrence, Thing

_WORDS: Final = frozenset(
    {"and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"}
)
_RENAMED: Final = ("step", "task", "iterator")
_TITLES: Final = {
    "workload": "key of the workload", "ctx": "key of ctx", "iter": "key of iter", "scratch": "key of step",
    "input": "input", "workbook": "task of the workbook", "credential": "credential", "edge": "label of an arc",
}  # fmt: skip


class RefusedRename(Exception):  # noqa: N818 - it is an answer, not a fault
    """The rename would do harm; the message says why and what to do."""


class Edit(NamedTuple):
    """Text to put in the place of a range."""

    start: int
    end: int
    text: str


class Target(NamedTuple):
    """What would be renamed: its range at the cursor and its name."""

    start: int
    end: int
    thing: Thing


def target(reading: Reading, offset: int) -> Target | None:
    """Give what a rename at this place would rename; None where nothing can be."""
    for one in things_at(reading, offset):
        if one.thing.kind in _RENAMED and one.spelled and reading.text[one.start : one.end] == one.thing.name:
            return Target(one.start, one.end, one.thing)
    return None


def rename(reading: Reading, offset: int, name: str) -> tuple[Edit, ...]:
    """Give the edits that rename what stands at this place; raises RefusedRename where they would do harm."""
    found = target(reading, offset)
    if found is None:
        raise RefusedRename("There is no step, task or iterator here that could be renamed.")
    thing = found.thing
    if name == thing.name:
        return ()
    before = reading.occurrences
    _check_document(reading, before, thing)
    _check_name(reading.subject.names, thing, name)
    _check_code(reading, thing)
    renamed = _renamed(reading, thing, name)
    edits = _edits(reading, before, renamed)
    _check_result(reading, before, edits, renamed)
    return edits


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Give a text with edits made."""
    for start, end, new in sorted(edits, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


def _renamed(reading: Reading, thing: Thing, name: str) -> dict[Thing, Thing]:
    """Give every thing whose name changes; the label of a step's only task may be made from the step's name."""
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
                f"On line {line} the name '{one.thing.name}' is written with escapes. Write it plainly first."
            )
        edits[one.start, one.end] = Edit(one.start, one.end, new)
    for one in before:
        if (one.start, one.end) in edits and one.spelled and renamed.get(one.thing, one.thing).name == one.thing.name:
            line = reading.exact.source.position(one.start).line
            also = _TITLES.get(one.thing.kind, one.thing.kind)
            raise RefusedRename(
                f"On line {line} '{one.thing.name}' names a {also} as well. Give the two names of their own first."
            )
    return tuple(edits[place] for place in sorted(edits))


def _check_document(reading: Reading, before: Iterable[Occurrence], thing: Thing) -> None:
    if not reading.is_whole:
        raise RefusedRename("This playbook cannot be read to its end. Correct its syntax first, then rename.")
    places = {(one.start, one.end) for one in before if one.thing == thing and one.defines and one.spelled}
    title = thing.kind
    if not places:
        raise RefusedRename(
            f"The {title} '{thing.name}' has its name from nowhere in this playbook. Write it down first."
        )
    if len(places) > 1:
        raise RefusedRename(f"There are {len(places)} {title}s called '{thing.name}'. Tell them apart by hand first.")


def _check_name(names: Names, thing: Thing, name: str) -> None:
    if not name.isidentifier():
        raise RefusedRename(f"'{name}' is no name: write letters, digits and '_', and no digit at the front.")
    if name in _WORDS or not isinstance(resolve(name), str) or name in LEGACY_BOOLEANS:
        raise RefusedRename(f"'{name}' means something else in YAML or in templates. Choose another name.")
    if name in SCOPES or name in LOOP_NAMES:
        raise RefusedRename(f"'{name}' is a name of the language: templates would read that. Choose another name.")
    kind = "task" if thing.kind == "task" else "step"
    if name in (names.labels.get(thing.owner, ()) if kind == "task" else names.steps):
        raise RefusedRename(f"There is a {kind} called '{name}' already. Choose another name.")


def _check_code(reading: Reading, thing: Thing) -> None:
    """Refuse where Python code has the iterator as a variable: what the code means by it is not known here."""
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
    """Read the new text and refuse it where a name stands for something else than before, or a diagnostic is new."""
    after = reading.with_text(applied(reading.text, edits))
    old = [(renamed.get(one.thing, one.thing), one.defines, one.spelled) for one in before]
    new = [(one.thing, one.defines, one.spelled) for one in after.occurrences]
    if Counter(old) != Counter(new):
        raise RefusedRename("With this name, some templates would read something else. Choose another name.")
    worse = Counter(one.code for one in after.diagnostics) - Counter(one.code for one in reading.diagnostics)
    if worse:
        first = next(one for one in after.diagnostics if one.code in worse)
        raise RefusedRename(f"With this name there would be a new diagnostic on line {first.line}: {first.message}")
