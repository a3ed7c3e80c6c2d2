"""Code in other languages is found wherever a kind's types say that it stands."""

from __future__ import annotations

from textwrap import dedent

import pytest

from noetl.dsl.analysis.embedded_code import file_line
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
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


STYLES = """\
workbook:
  - name: shared
    kind: python
    code: |
      y = 1
      y / 0
workflow:
  - step: a
    tool:
      - literal:
          kind: python
          code: |

            def f():
                return 1 / 0
            f()
      - folded:
          kind: python
          code: >
            x = 1


            x / 0
      - quoted: { kind: python, code: "x = 1\\nx / 0" }
      - plain: { kind: python, code: x / 0 }
      - inline: { kind: python, script: { content: "x = 2\\nx / 0", source: { type: inline } } }
      - call: { kind: workbook, task: shared }
      - encoded: { kind: python, code_b64: eCAvIDA= }
"""


@pytest.mark.parametrize(
    ("task", "line", "begins", "expected"),
    [
        ("literal", 3, "return 1 / 0", 15),
        ("literal", 4, "f()", 16),
        ("folded", 3, "x / 0", 23),
        ("quoted", 2, "x / 0", 24),
        ("plain", 1, "x", 25),
        ("inline", 2, "x / 0", 26),
        ("call", 2, "y / 0", 6),
        ("call/shared", 2, "y / 0", 6),
        ("literal", 3, "another version", None),
        ("literal", 9, "", None),
        ("encoded", 1, "x / 0", None),
        ("no_such_task", 1, "", None),
    ],
)
def test_a_line_of_code_is_found_in_the_file(task: str, line: int, begins: str, expected: int | None) -> None:
    document = parse(STYLES, "code.yaml")
    found = file_line(document.source, normalize(document), "a", task, line, begins)
    assert found == expected
