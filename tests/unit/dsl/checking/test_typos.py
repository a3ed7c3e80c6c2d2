"""What counts as a typo, and what is only a similar name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.checking.typos import is_slip, slip_of

NAMES = st.text("abcdexyz", min_size=4, max_size=12)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("toatl", "total"), ("totl", "total"), ("totall", "total"), ("row_cuont", "row_count"),
        ("rowCount", "rowcount"), ("row-count", "row_count"), ("recieved", "received"), ("aproved", "approved"),
        ("appruved", "approved"),
    ],
)  # fmt: skip
def test_slips(written: str, meant: str) -> None:
    assert is_slip(written, meant)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("total", "total"), ("a_done", "b_done"), ("page_1", "page_2"), ("page", "page1"), ("date", "data"),
        ("id", "ids"), ("started", "stopped"), ("rows", "columns"),
    ],
)  # fmt: skip
def test_names_that_only_look_alike(written: str, meant: str) -> None:
    assert not is_slip(written, meant)


@given(NAMES, NAMES)
def test_slips_have_no_direction(left: str, right: str) -> None:
    assert is_slip(left, right) == is_slip(right, left)


@given(NAMES, st.data())
def test_a_missing_letter_is_a_slip(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(name) - 1))
    assert is_slip(name[:place] + name[place + 1 :], name)


@given(NAMES, st.data())
def test_two_swapped_letters_are_a_slip(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(name) - 2))
    swapped = name[:place] + name[place + 1] + name[place] + name[place + 2 :]
    assert is_slip(swapped, name) or swapped == name


def test_the_name_that_was_meant() -> None:
    assert slip_of("toatl", {"other", "total"}) == "total"
    assert slip_of("unrelated", {"other", "total"}) is None
    assert slip_of("anything", ()) is None
