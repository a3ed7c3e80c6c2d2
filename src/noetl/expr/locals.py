"""The variables of a template while it is lowered: which names `set` and `for` define, and where they are certain.

As in Jinja2, a `for` body is a scope of its own that each iteration enters afresh, and an `if` is none. A name that is
set in one branch only may still mean the data: it is tried as a variable first and read from the scope then.
Tested in tests/unit/expr/test_statements.py and test_reads.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct


class Names(Struct):
    """The variables of one scope."""

    parent: Names | None = None
    slots: dict[str, int] = {}
    sure: set[str] = set()
    namespaces: set[str] = set()
    used: set[str] = set()

    def chain(self) -> Iterator[Names]:
        """This scope and those around it."""
        names: Names | None = self
        while names is not None:
            yield names
            names = names.parent

    def resolve(self, name: str) -> tuple[tuple[int, ...], bool]:
        """The slots that may hold `name`, innermost first, and whether one of them certainly does."""
        slots: list[int] = []
        for names in self.chain():
            slot = names.slots.get(name)
            if slot is None:
                continue
            names.used.add(name)
            slots.append(slot)
            if name in names.sure:
                return tuple(slots), True
        return tuple(slots), False

    def namespace(self, name: str) -> int | None:
        """The slot of the namespace called `name`, if that is what the name means here."""
        for names in self.chain():
            if name in names.slots:
                return names.slots[name] if name in names.namespaces else None
        return None
