"""Ranges of offsets, searched by bisection.

Tested in tests/unit/dsl/reading/test_ranges.py.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


class Ranges:
    """The union of half-open ranges."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(ranges):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            elif start < end:
                self._starts.append(start)
                self._ends.append(end)

    def cover(self, offset: int) -> bool:
        """Return whether an offset is in one of the ranges."""
        number = bisect_right(self._starts, offset) - 1
        return number >= 0 and offset < self._ends[number]


class Offsets:
    """A set of offsets."""

    def __init__(self, offsets: Iterable[int]) -> None:
        self._sorted = sorted(offsets)

    def any_in(self, start: int, end: int) -> bool:
        """Return whether one of the offsets is in a range."""
        first = bisect_left(self._sorted, start)
        return first < len(self._sorted) and self._sorted[first] < end
