"""Finds every place where a field of the language may stand, as dotted paths from the root of a playbook.

Lists and free maps are passed through, so the path of a field is the keys that people write above it. Tested in
tests/unit/dsl/test_explain.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from noetl.dsl.grammar import LEVELS
from noetl.dsl.types import Field, Level, LevelOf, ListOf, MapOf, OneOf, Type

# What people call the things that stand in lists: `arc.when` is `workflow.next.arcs.when`.
_SPOKEN: dict[tuple[str, ...], str] = {
    ("workflow",): "step",
    ("workflow", "tool"): "task",
    ("workflow", "next", "arcs"): "arc",
    ("workflow", "tool", "spec", "policy", "rules"): "rule",
}


class Place(Struct, frozen=True):
    """A field at one place: its path from the root, the level that holds it, and the field."""

    path: tuple[str, ...]
    level: Level
    field: Field

    def names(self) -> Iterator[str]:
        """Give every way to call it: each end of its path, also below the word for the thing that holds it."""
        for start in range(len(self.path)):
            yield ".".join(self.path[start:])
        for above, word in _SPOKEN.items():
            if self.path[: len(above)] == above and len(self.path) > len(above):
                yield ".".join((word, *self.path[len(above) :]))

    def spoken(self) -> str:
        """Give the name to show: short, and still saying what holds it."""
        above = max((found for found in _SPOKEN if self.path[: len(found)] == found), key=len, default=())
        below = self.path[len(above) :]
        if not above or not below:
            return ".".join(self.path)
        return ".".join(below if above == ("workflow",) and len(below) > 2 else (_SPOKEN[above], *below))


def places() -> Iterator[Place]:
    """Give every field of the grammar at every place, from the root down."""
    yield from _below((), LEVELS["playbook"], ())


def fields_below(path: tuple[str, ...], level: Level) -> Iterator[Place]:
    """Give the fields of a level that stands at a path, and everything below them."""
    yield from _below(path, level, ())


def _below(path: tuple[str, ...], level: Level, above: tuple[str, ...]) -> Iterator[Place]:
    if level.name in above:
        return
    for field in level.fields:
        here = (*path, field.name)
        yield Place(here, level, field)
        for inner in levels_of(field.type):
            yield from _below(here, inner, (*above, level.name))


def levels_of(kind: Type) -> Iterator[Level]:
    """Give the levels that a value of a type may be or hold."""
    match kind:
        case LevelOf(name, own):
            yield own or LEVELS[name]
        case ListOf(item):
            yield from levels_of(item)
        case MapOf(value):
            yield from levels_of(value)
        case OneOf(options):
            for option in options:
                yield from levels_of(option)
