"""Rows by column are the same rows as maps of them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.tools.sql.chunk import Chunk, Maps, from_database
from noetl.tools.sql.statements import RowsError, plain_rows

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.dates(),
    st.binary(),
    st.decimals(),
    st.lists(st.text()),
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]]]:
    names = draw(st.lists(st.text(max_size=5), min_size=1, max_size=5))  # a query may name two columns alike
    row = st.tuples(*[VALUES] * len(names))
    return names, draw(st.lists(row, min_size=1, max_size=5))


@given(tables())
def test_rows_of_a_database_are_the_same_in_both_forms(table: tuple[list[str], list[tuple[Any, ...]]]) -> None:
    names, rows = table
    by_column, maps = from_database(names, rows), Maps(plain_rows(names, rows))
    assert msgspec.json.encode(by_column.rows) == msgspec.json.encode(maps.rows)
    assert (len(by_column), by_column.names, by_column.size) == (len(maps), maps.names, maps.size)
    for name in names:
        assert list(by_column.column(name)) == list(maps.column(name))


CHUNKS: list[Chunk] = [
    from_database(["id", "day", "price"], [(1, date(2026, 5, 1), Decimal("1.50")), (2, None, None)]),
    Maps([{"id": 1, "day": "2026-05-01", "price": 1.5}, {"id": 2, "day": None, "price": None}]),
]


@pytest.mark.parametrize("chunk", CHUNKS, ids=["columns", "maps"])
def test_columns_are_chosen_and_renamed(chunk: Chunk) -> None:
    chosen = chunk.renamed({"number": "id", "on": "day"})
    assert chosen.rows == [{"number": 1, "on": "2026-05-01"}, {"number": 2, "on": None}]
    assert chosen.names == ["number", "on"]


@pytest.mark.parametrize("chunk", CHUNKS, ids=["columns", "maps"])
def test_a_missing_column_is_named(chunk: Chunk) -> None:
    with pytest.raises(RowsError, match="a row of the source has no column `customer`, `town`"):
        chunk.renamed({"a": "customer", "b": "town", "c": "id"})


def test_maps_may_lack_columns() -> None:
    maps = Maps([{"a": 1}, {"b": 2}])
    assert maps.names == ["a"]
    assert maps.column("b") == [None, 2]
