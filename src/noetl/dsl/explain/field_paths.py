"""Find every dotted path at which a field of the language may occur.

Lists and free maps are skipped, so a path consists of the keys above the field. Tested in tests/unit/dsl/test_explain.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.types import Field, Level, LevelOf, Type, leaves

# Short names of list items: `arc.when` is `workflow.next.arcs.when`.
_SPOKEN: dict[tuple[str, ...], str] = {
    ("workflow",): "step",
    ("workflow", "tool"): "task",
    ("workflow", "next", "arcs"): "arc",
    ("workflow", "tool", "spec", "policy", "rules"): "rule",
}


class Place(Struct, frozen=True):
    """A field at one path, with the level that holds it."""

    path: tuple[str, ...]
    level: Level
    field: Field

    def names(self) -> Iterator[str]:
        """Yield every name of the field: each suffix of its path, and short names."""
        for start in range(len(self.path)):
            yield ".".join(self.path[start:])
        for above, word in _SPOKEN.items():
            if self.path[: len(above)] == above and len(self.path) > len(above):
                yield ".".join((word, *self.path[len(above) :]))

    def spoken(self) -> str:
        """Return the shortest name that still includes the part that holds the field."""
        above = max((path for path in _SPOKEN if self.path[: len(path)] == path), key=len, default=())
        below = self.path[len(above) :]
        if not above or not below:
            return ".".join(self.path)
        return ".".join(below if above == ("workflow",) and len(below) > 2 else (_SPOKEN[above], *below))


def places() -> Iterator[Place]:
    """Yield every field of the grammar at every path, from the root down."""
    yield from _below((), LEVELS["playbook"], ())
    yield from _below(("subscription",), LEVELS["subscription"], ())


def fields_below(path: tuple[str, ...], level: Level) -> Iterator[Place]:
    """Yield the fields of a level at a path, and everything below them."""
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
    """Yield the levels that a value of a type may be or contain."""
    return (leaf.own or LEVELS[leaf.level] for leaf in leaves(kind) if isinstance(leaf, LevelOf))
