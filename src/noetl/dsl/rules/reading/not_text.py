"""NOE010 reports bytes that are not UTF-8 and control characters."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.reading.problems import problem_check

GOOD = example("""\
workflow:
  - step: greet
    tool: { kind: noop, message: "Hello" }
""")

RULE = Rule(
    code="NOE010",
    name="not-text",
    severity="error",
    summary="The file contains a byte that is not UTF-8, or a control character.",
    why="An invisible character changes names and values unnoticed.",
    fix="Save the file as UTF-8 and remove the character. In double quotes you can write it as an escape, such as `\\x1b`.",
    bad=GOOD.replace("Hello", "Hel\x7flo"),
    good=GOOD,
    check=problem_check(
        "not-text",
        fix='Save the file as UTF-8. Write a control character as an escape in double quotes, such as "\\x1b".',
    ),
)
