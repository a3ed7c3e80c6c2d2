"""Value of a missing name or key: chainable, false, empty, self-describing.

`a.b.c` over a scope without `a` is an `Undefined` with the path `a.b.c`, so `a.b.c | default(1)` works. Comparisons
with it are false, except `!=`; arithmetic raises `UndefinedError`. The caller decides whether an undefined result is
acceptable. Tested in tests/unit/expr/runtime/test_undefined.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from noetl.expr.errors import UndefinedError
from noetl.expr.names import did_you_mean, dotted, nearest

Path = tuple[str | int, ...]
_LONGEST: Final = 100  # elements of a path that are remembered: no value is nested deeper
NO_ELSE: Final[Path] = ("(choice without else)",)


class Undefined:
    """Missing value; `path` identifies it."""

    __slots__ = ("found", "holder", "path")

    def __init__(self, path: Path, found: int = 0, holder: object = None) -> None:
        self.path = path
        # How many elements of the path exist, and the value there: enough to suggest names later.
        self.found = found
        self.holder = holder

    def below(self, key: object) -> Undefined:
        """Look up `key`: undefined as well, with a longer path."""
        if len(self.path) >= _LONGEST:
            return self
        element = key if isinstance(key, str | int) else str(type(key).__name__)
        return Undefined((*self.path, element), self.found, self.holder)

    @property
    def is_choice(self) -> bool:
        """Whether a choice without `else` had no match: `{{ ',' if not loop.last }}`."""
        return self.path == NO_ELSE

    @property
    def candidates(self) -> tuple[str, ...]:
        """Known names that the missing one probably means."""
        if self.found >= len(self.path) or not isinstance(self.holder, Mapping):
            return ()
        return nearest(str(self.path[self.found]), self.holder)

    def describe(self) -> str:
        """Describe what is missing and where the path stops."""
        whole = dotted(self.path)
        if not self.found or self.found >= len(self.path):
            return f"`{whole}` is undefined"
        there, missing = dotted(self.path[: self.found]), self.path[self.found]
        if self.holder is None:
            return f"`{whole}` is undefined: `{there}` is null"
        if isinstance(missing, int):
            return f"`{whole}` is undefined: `{there}` has no item {missing}"
        return f"`{whole}` is undefined: `{there}` has no key `{missing}`"

    def fail(self, offset: int | None = None) -> NoReturn:
        raise self.error(offset)

    def error(self, offset: int | None = None) -> UndefinedError:
        """Return the error for a place that requires a value."""
        candidates = self.candidates
        fix = did_you_mean(candidates) or "give it a value, or write `| default(…)` after it"
        return UndefinedError(self.describe(), offset, fix, self.path, candidates)

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __str__(self) -> str:
        return ""

    def __repr__(self) -> str:
        return f"Undefined({dotted(self.path)!r})"

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return id(self) >> 4

    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__


def first_undefined(value: object) -> Undefined | None:
    """Return the first undefined value anywhere in `value`, or None."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Undefined):
            return item
        if isinstance(item, dict):
            stack.extend(reversed(item.values()))
        elif isinstance(item, list | tuple):
            stack.extend(reversed(item))
    return None
