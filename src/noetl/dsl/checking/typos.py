"""Detect typing mistakes in names that may be right.

Only a clear typing mistake is reported: the name may come from outside. Tested in tests/unit/dsl/checking/test_typos.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from noetl.dsl.diagnostic import folded_name

_SHORTEST = 3
_LONGEST = 64
_MOST_ALIKE = 16
_SHORTEST_WITH_WRONG_LETTER = 6
# Common keys of results and bodies that are one typing mistake away from a field of an outcome or of an HTTP result.
_COMMON_KEYS = frozenset(
    {"stats", "states", "statuses", "date", "errors", "results", "urls", "curl", "header", "metadata"}
)


def slip_of(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that `name` is a typing mistake of, or None."""
    return _index(frozenset(candidates)).slip_of(name)


@lru_cache(maxsize=32)
def _index(candidates: frozenset[str]) -> _Index:
    return _Index(candidates)


class _Index:
    """Names by what is left of them without one letter, so that few are compared."""

    def __init__(self, candidates: frozenset[str]) -> None:
        self._by_rest: dict[str, list[str]] = {}
        for candidate in sorted(candidates):
            for rest in _rests(candidate):
                alike = self._by_rest.setdefault(rest, [])
                if len(alike) < _MOST_ALIKE:
                    alike.append(candidate)

    def slip_of(self, name: str) -> str | None:
        alike = {candidate for rest in _rests(name) for candidate in self._by_rest.get(rest, ())}
        return min((candidate for candidate in alike if is_slip(name, candidate)), default=None)


def _rests(name: str) -> set[str]:
    """Return a name as people read it, as it is, and without each of its letters."""
    if len(name) > _LONGEST:
        return set()
    return {
        folded_name(name),
        name,
        *(name[:at] + name[at + 1 :] for at, letter in enumerate(name) if not letter.isdigit()),
    }


def slip_beside_data(name: str, fields: Iterable[str]) -> str | None:
    """Return the field that `name` misspells, where data may have any key."""
    return None if name in _COMMON_KEYS else slip_of(name, fields)


def is_slip(written: str, meant: str) -> bool:
    """Return whether two names differ by one swapped, missing or wrong letter.

    Names that differ in a digit or in their first letter only are a series (`page_1`, `page_2`; `a_done`, `b_done`).
    """
    if written == meant or min(len(written), len(meant)) < _SHORTEST:
        return False
    if written.casefold().replace("-", "_") == meant.casefold().replace("-", "_"):
        return True
    if abs(len(written) - len(meant)) > 1:
        return False
    start = 0
    while start < min(len(written), len(meant)) and written[start] == meant[start]:
        start += 1
    end = 0
    while end < min(len(written), len(meant)) - start and written[-1 - end] == meant[-1 - end]:
        end += 1
    left, right = written[start : len(written) - end], meant[start : len(meant) - end]
    if any(letter.isdigit() for letter in left + right):
        return False
    if len(left) == len(right) == 1:
        return start > 0 and len(meant) >= _SHORTEST_WITH_WRONG_LETTER
    if len(left) == len(right) == 2:
        return left == right[::-1]
    return len(left) + len(right) == 1
