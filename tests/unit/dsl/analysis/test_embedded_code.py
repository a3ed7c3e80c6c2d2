"""Code in other languages is found wherever a kind's types say that it stands."""

from __future__ import annotations

from textwrap import dedent

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.reading.parse import parse
from noetl.wiring.embedded import language_kinds

KINDS = language_kinds()


def found(text: str) -> list[tuple[str, str, str]]:
    """Return language, field and text of every piece of code."""
    subject = CheckContext(parse(dedent(text), "code.yaml"), KINDS)
    return [(code.language, code.field, code.node.text) for code in subject.code]


def test_code_of_tasks_of_the_workbook_and_of_steps() -> None:
    text = """\
    workbook:
      - { name: one, kind: python, code: result = 1 }
    workflow:
      - step: a
        tool:
          - { name: two, kind: shell, command: ls }
          - three: { kind: postgres, query: SELECT 3 }
    """
    assert found(text) == [("python", "code", "result = 1"), ("shell", "command", "ls"), ("sql", "query", "SELECT 3")]


def test_lists_hold_several_pieces_and_arguments_are_no_code() -> None:
    text = """\
    workflow:
      - step: a
        tool:
          - { name: one, kind: shell, cmds: [ls, pwd] }
          - { name: two, kind: shell, command: [rm, -rf, x] }
          - { name: three, kind: duckdb, commands: [SELECT 1, SELECT 2] }
    """
    assert [piece for _, _, piece in found(text)] == ["ls", "pwd", "SELECT 1", "SELECT 2"]


def test_code_inside_maps_and_under_spec() -> None:
    text = """\
    workflow:
      - step: a
        tool:
          - kind: transfer
            source: { kind: postgres, query: SELECT 1 }
            target: { kind: file, path: out.csv }
          - kind: python
            spec: { code: result = 2 }
    """
    assert found(text) == [("sql", "source", "SELECT 1"), ("python", "code", "result = 2")]


def test_the_claim_of_a_cursor_is_sql() -> None:
    text = """\
    workflow:
      - step: a
        loop: { iterator: row, cursor: { kind: postgres, claim: DELETE FROM jobs, key: id } }
        tool: { kind: noop }
    """
    assert found(text) == [("sql", "claim", "DELETE FROM jobs")]


def test_misshapen_values_and_unknown_kinds_hold_none() -> None:
    text = """\
    workflow:
      - step: a
        tool:
          - { name: one, kind: nobody, code: x }
          - { name: two, kind: python, code: { not: text } }
          - { name: three, kind: shell, cmds: 5 }
    """
    assert found(text) == []
