"""NOE010 reports bytes that are not UTF-8 and characters that a text does not have."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.reading.problems import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: greet, path: examples/greet }
workflow:
  - step: greet
    tool: { kind: noop, message: "Hello" }
"""


def check(subject: Subject) -> Iterator[Found]:
    fix = 'Save the file as UTF-8; write a control character as an escape in double quotes, such as "\\x1b".'
    return told(subject, fix, "not-text")


RULE = Rule(
    code="NOE010",
    name="not-text",
    group="reading",
    severity="error",
    summary="The file holds a byte that is not UTF-8, or a control character.",
    why="A character that cannot be seen changes names and values without anybody noticing.",
    fix="Save the file as UTF-8 and remove the character. In double quotes it may stand as an escape, such as `\\x1b`.",
    bad=GOOD.replace("Hello", "Hel\x7flo"),
    good=GOOD,
    check=check,
)
