"""NOE015 reports a value in `{ }` that a comma splits in two."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.checking.split_values import SplitValue

GOOD = example("""\
workflow:
  - step: greet
    tool: { kind: noop, message: "Hello, world" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for value in subject.split_values:
        first, last = value.words[0], value.words[-1]
        message = f"'{first.text}' was read as a key without a value: inside `{{ }}` a comma ends a value."
        is_strange = any(id(word) in subject.strange_keys for word in value.words)
        yield Finding(first.start, last.end, message, _fix(value), "error" if is_strange else None)


def _fix(value: SplitValue) -> str:
    if value.before is None:
        return f"Write a colon and the value: `{value.words[0].text}: …`, or put the text that it belongs to in quotes."
    whole = value.whole
    quoted = "'" + whole.replace("'", "''") + "'" if '"' in whole or "\\" in whole else f'"{whole}"'
    return f"Put the whole value in quotes: `{value.before.key.text}: {quoted}`."


RULE = Rule(
    code="NOE015",
    name="split-value",
    severity="warning",
    summary="Inside `{ }`, an unquoted value holds a comma, so its rest was read as a key.",
    why="In YAML, a comma inside `{ }` separates entries. The value ends at the comma, and what follows becomes a key "
    "whose value is null. It is an error where no such key exists.",
    fix='Put the whole value in quotes, `{ message: "Hello, world" }`, or write one key per line without braces.',
    bad=GOOD.replace('"Hello, world"', "Hello, world"),
    good=GOOD,
    check=check,
)
