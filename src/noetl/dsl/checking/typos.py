"""Detect typing mistakes in names that may be right.

Only a clear typing mistake is reported: the name may come from outside. Tested in tests/unit/dsl/checking/test_typos.py.
"""

from __future__ import annotations

from collections.abc import Iterable

_SHORTEST = 3
_SHORTEST_WITH_WRONG_LETTER = 6
# Common keys of results and bodies that are one typing mistake away from a field of an outcome or of an HTTP result.
_COMMON_KEYS = frozenset(
    {"stats", "states", "statuses", "date", "errors", "results", "urls", "curl", "header", "metadata"}
)


def slip_of(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that `name` is a typing mistake of, or None."""
    return next((candidate for candidate in sorted(candidates) if is_slip(name, candidate)), None)


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
