"""Suggest names and format paths. Tested in tests/unit/expr/test_names.py."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

# A scope can hold thousands of names; comparing more would cost more than a suggestion is worth.
MOST_NAMES = 2_000
_MOST_COMPARED = 300
_LONGEST = 60


def nearest(name: str, known: Iterable[object], count: int = 3) -> tuple[str, ...]:
    """Return names of `known` that `name` probably means, nearest first."""
    names = [candidate for candidate in islice(known, MOST_NAMES) if isinstance(candidate, str) and candidate != name]
    folded = name.casefold()
    same = [candidate for candidate in names if len(candidate) == len(name) and candidate.casefold() == folded]
    near = [candidate for candidate in names if abs(len(candidate) - len(name)) <= len(name) // 2 + 2]
    close = get_close_matches(name, near[:_MOST_COMPARED], n=count, cutoff=0.6) if len(name) < _LONGEST else []
    return tuple(dict.fromkeys([*same, *close]))[:count]


def dotted(path: Iterable[str | int]) -> str:
    """Format `("rows", 0, "first name")` as `rows[0]['first name']`."""
    text = ""
    for element in path:
        if isinstance(element, int):
            text += f"[{element}]"
        elif element.isidentifier():
            text += f".{element}" if text else element
        else:
            text += f"[{element!r}]" if text else element
    return text


def did_you_mean(candidates: tuple[str, ...]) -> str | None:
    """Format candidates as a fix, or return None."""
    if not candidates:
        return None
    return "did you mean " + " or ".join(f"`{candidate}`" for candidate in candidates) + "?"
