"""Rendered SQL in a real database: values survive, nothing else is executed."""

from __future__ import annotations

import duckdb
import pytest

from noetl.expr import TemplateError, compile_template
from noetl.expr.sql.statements import render_sql, split_statements
from tests.unit.expr.sql.sql_corpus import INJECTIONS

PLACES = (
    "SELECT {{ v }}", "SELECT '{{ v }}'", "SELECT E'{{ v }}'", "SELECT $${{ v }}$$", "SELECT $x${{ v }}$x$",
    "SELECT '{{ v | replace(\"'\", \"''\") }}'", "SELECT {{ v }} -- {{ v }}", "/* {{ v }} */ SELECT '{{ v }}'",
    "SELECT E''\n'{{ v }}'",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_value_comes_out_as_it_went_in(place: str) -> None:
    with duckdb.connect() as database:
        database.execute("CREATE TABLE users (a INT)")
        for value in INJECTIONS:
            text = render_sql(compile_template(place), {"v": value}, dialect="duckdb")
            assert database.execute(text).fetchall() == [(value,)], text
        assert database.execute("SELECT count(*) FROM users").fetchall() == [(0,)]


def test_a_name_is_one_name() -> None:
    with duckdb.connect() as database:
        for value in INJECTIONS:
            if "\0" in value:
                continue
            text = render_sql(compile_template('SELECT 1 AS "{{ v }}"'), {"v": value}, dialect="duckdb")
            described = database.execute(text).description
            assert described is not None
            assert described[0][0] == value


@pytest.mark.parametrize("value", INJECTIONS)
def test_a_table_that_is_not_there_is_all_that_a_strange_name_leads_to(value: str) -> None:
    try:
        text = render_sql(compile_template("SELECT * FROM {{ v }}"), {"v": value}, dialect="duckdb")
    except TemplateError:
        return
    assert len(duckdb.extract_statements(text)) == len(split_statements(text)) == 1


def test_statements_are_split_as_the_database_splits_them() -> None:
    text = "SELECT ';'; SELECT $$;$$; /* ; */ SELECT \";\" FROM (SELECT 1 AS \";\"); -- ;\nSELECT E'\\';'"
    assert len(split_statements(text)) == len(duckdb.extract_statements(text)) == 4
