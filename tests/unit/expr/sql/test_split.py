"""Splitting a text of SQL into statements, and telling which of them only read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.expr.sql.statements import ends_transaction, is_read_only, split_statements

SPLITS: tuple[tuple[str, list[str]], ...] = (
    ("", []),
    (" \n ", []),
    (";;;", []),
    ("SELECT 1", ["SELECT 1"]),
    ("SELECT 1;", ["SELECT 1"]),
    ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
    ("SELECT ';'; SELECT 2", ["SELECT ';'", "SELECT 2"]),
    ("SELECT 'a'';b'; SELECT 2", ["SELECT 'a'';b'", "SELECT 2"]),
    (r"SELECT E'\';'; SELECT 2", [r"SELECT E'\';'", "SELECT 2"]),
    (r"SELECT '\'; SELECT 2", [r"SELECT '\'", "SELECT 2"]),
    ('SELECT ";"; SELECT 2', ['SELECT ";"', "SELECT 2"]),
    ('SELECT "a"";"; SELECT 2', ['SELECT "a"";"', "SELECT 2"]),
    ("SELECT 1 -- ; no\n; SELECT 2", ["SELECT 1 -- ; no", "SELECT 2"]),
    ("-- only a comment;\n", []),
    ("SELECT 1; -- the end;", ["SELECT 1"]),
    ("/* ; */ SELECT 1; /* ; */", ["/* ; */ SELECT 1"]),
    ("/* a /* ; */ ; */ SELECT 1", ["/* a /* ; */ ; */ SELECT 1"]),
    ("DO $$ BEGIN a; b; END $$; SELECT 2", ["DO $$ BEGIN a; b; END $$", "SELECT 2"]),
    ("DO $x$ a; $$ b; $$ $x$; SELECT 2", ["DO $x$ a; $$ b; $$ $x$", "SELECT 2"]),
    ("SELECT $$;$$, $a$;$$;$a$; SELECT 2", ["SELECT $$;$$, $a$;$$;$a$", "SELECT 2"]),
    ("SELECT a$$b; SELECT 2", ["SELECT a$$b", "SELECT 2"]),
    ("SELECT $1; SELECT 2", ["SELECT $1", "SELECT 2"]),
    (
        "CREATE FUNCTION f() RETURNS int AS $$ BEGIN x; END; $$ LANGUAGE plpgsql; SELECT 1",
        ["CREATE FUNCTION f() RETURNS int AS $$ BEGIN x; END; $$ LANGUAGE plpgsql", "SELECT 1"],
    ),
    (
        "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN a THEN 1 END; SELECT 2; END; SELECT 3",
        ["CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN a THEN 1 END; SELECT 2; END", "SELECT 3"],
    ),
    (
        "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); SELECT 3",
        ["CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)", "SELECT 3"],
    ),
    ("BEGIN; SELECT 1; END; COMMIT", ["BEGIN", "SELECT 1", "END", "COMMIT"]),
    ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
    ("SELECT $$open; SELECT 2", ["SELECT $$open; SELECT 2"]),
    ("SELECT 1\r\n;\r\nSELECT 2", ["SELECT 1", "SELECT 2"]),
    ("SELECT 'é;ü'; SELECT 2", ["SELECT 'é;ü'", "SELECT 2"]),
)


@pytest.mark.parametrize(("text", "statements"), SPLITS)
def test_splits(text: str, statements: list[str]) -> None:
    assert split_statements(text) == statements


_STATEMENTS = st.lists(
    st.sampled_from(
        ["SELECT 1", "SELECT ';'", "DO $$ a; b $$", 'SELECT ";"', "SELECT 1 /* ; */", "INSERT INTO t VALUES ('a;')"]
    )
)


@given(_STATEMENTS)
def test_what_was_joined_is_split_again(statements: list[str]) -> None:
    assert split_statements(";\n".join(statements)) == statements


@given(st.text(alphabet=st.sampled_from("a'\"$;-/*\\\n x()")))
def test_nothing_is_lost_and_no_text_is_too_strange(text: str) -> None:
    joined = "".join(split_statements(text))
    assert all(char in text for char in joined)
    assert len(joined) <= len(text)


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("SELECT 1", True),
        ("select 1; SELECT 2", True),
        ("WITH a AS (SELECT 1) SELECT * FROM a", True),
        ("SELECT * FROM t FOR UPDATE", True),
        ("SELECT * FROM t FOR NO KEY UPDATE", True),
        ("SELECT 'DELETE FROM t'", True),
        ('SELECT "delete" FROM t -- DELETE', True),
        ("VALUES (1)", True),
        ("SHOW ALL", True),
        ("EXPLAIN SELECT 1", True),
        ("EXPLAIN ANALYZE SELECT 1", False),
        ("", False),
        ("-- nothing", False),
        ("SELECT 1; DELETE FROM t", False),
        ("WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a", False),
        ("SELECT * INTO t FROM u", False),
        ("SELECT nextval('s')", False),
        ("CALL p()", False),
        ("DO $$ BEGIN END $$", False),
        ("UPDATE t SET a = 1", False),
        ("CREATE TABLE t (a int)", False),
        ("COPY t TO 'x'", False),
        ("BEGIN; SELECT 1", False),
    ],
)
def test_what_only_reads(text: str, reads: bool) -> None:
    assert is_read_only(text) is reads


def test_what_ends_a_transaction() -> None:
    assert ends_transaction("SELECT 1; COMMIT")
    assert ends_transaction("PREPARE TRANSACTION 'x'")
    harmless = [
        "ROLLBACK TO SAVEPOINT a", "SAVEPOINT a", "DO $$ BEGIN PERFORM 1; END $$", "SELECT 'COMMIT'",
        "-- COMMIT\nSELECT 1",
    ]  # fmt: skip
    assert not any(map(ends_transaction, harmless))
