"""Ranges and offsets: asked as if each were compared."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.reading.ranges import Offsets, Ranges

PLACES = st.integers(0, 30)


@given(st.lists(st.tuples(PLACES, PLACES), max_size=8), PLACES)
def test_a_range_covers_what_one_of_them_covers(ranges: list[tuple[int, int]], offset: int) -> None:
    assert Ranges(ranges).cover(offset) == any(start <= offset < end for start, end in ranges)


@given(st.lists(PLACES, max_size=8), PLACES, PLACES)
def test_offsets_are_found_in_a_range(offsets: list[int], start: int, end: int) -> None:
    assert Offsets(offsets).any_in(start, end) == any(start <= offset < end for offset in offsets)
