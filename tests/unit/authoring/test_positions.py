"""Places as editors count them: code units, line ends, byte order marks."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.authoring.positions import CodeUnits, Encoding, Lines, Place

pieces = st.sampled_from(["a", "ß", "€", "😀", "\n", "\r", "\r\n", "\u2028", "\x0b", " "])
texts = st.lists(pieces, max_size=30).map("".join)


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 11), ("utf-16", 6), ("utf-32", 5)])
def test_columns_are_counted_in_the_units_of_the_encoding(encoding: Encoding, column: int) -> None:
    lines = Lines("x\nß: 😀€x", encoding)
    offset = lines.text.index("€") + 1
    assert lines.place(offset) == Place(1, column)
    assert lines.offset(1, column) == offset


def test_an_emoji_before_the_column_shifts_it_by_one_code_unit() -> None:
    lines = Lines("name: 😀 step")
    assert lines.place(lines.text.index("step")) == Place(0, 9)
    assert lines.offset(0, 9) == lines.text.index("step")


def test_a_place_inside_of_a_character_is_moved_before_it() -> None:
    assert Lines("a😀b").offset(0, 2) == 1
    assert Lines("a😀b").offset(0, 3) == 2


def test_lines_end_with_lf_crlf_or_cr_and_nothing_else() -> None:
    lines = Lines("a\r\nb\rc\nd\u2028\x0be")
    assert [lines.place(lines.text.index(letter)) for letter in "abcde"] == [(0, 0), (1, 0), (2, 0), (3, 0), (3, 3)]


def test_a_column_behind_the_end_of_its_line_is_the_end_of_the_line() -> None:
    lines = Lines("ab\r\ncd")
    assert lines.offset(0, 99) == 2
    assert lines.offset(1, 99) == 6
    assert lines.offset(99, 0) == 6
    assert lines.offset(-1, -1) == 0


def test_offsets_do_not_count_a_byte_order_mark() -> None:
    lines = Lines("\ufeffab\ncd")
    assert lines.offset(0, 1) == 0
    assert lines.offset(0, 2) == 1
    assert lines.offset(1, 0) == 3
    assert lines.place(0) == Place(0, 1)
    assert lines.place(3) == Place(1, 0)


@given(texts, st.sampled_from(get_args(Encoding)))
def test_every_offset_has_a_place_that_leads_back_to_it(text: str, encoding: Encoding) -> None:
    lines = Lines(text, encoding)
    for offset in range(len(text) + 1):
        inside_of_a_break = offset and text[offset - 1 : offset + 1] == "\r\n"
        if not inside_of_a_break:
            assert lines.offset(*lines.place(offset)) == offset


@given(texts, st.integers(-2, 40), st.integers(-2, 90), st.sampled_from(get_args(Encoding)))
def test_any_place_gives_an_offset_inside_of_the_text(text: str, line: int, column: int, encoding: Encoding) -> None:
    assert 0 <= Lines(text, encoding).offset(line, column) <= len(text)


def test_code_units_count_a_wide_character_twice_and_a_byte_order_mark_once() -> None:
    units = CodeUnits("\ufeffa😀b")
    assert [units.units(offset) for offset in range(4)] == [1, 2, 4, 5]
    assert [units.offset(one) for one in range(7)] == [0, 0, 1, 1, 2, 3, 3]


@given(texts, st.booleans())
def test_code_units_are_those_of_the_encoded_text(text: str, is_marked: bool) -> None:
    units = CodeUnits(("\ufeff" if is_marked else "") + text)
    for offset in range(len(text) + 1):
        counted = units.units(offset)
        assert counted == is_marked + len(text[:offset].encode("utf-16-le")) // 2
        assert units.offset(counted) == offset
