"""NOE101 reports a key that the language does not have at this level."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.grammar.titles import title

GOOD = example("""\
workflow:
  - step: greet
    desc: Say good morning.
    tool: { kind: noop, message: Good morning }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind == "unknown-key" and finding.tool is None:
            message = f"'{finding.name}' is not a key of {title(finding.level)}."
            if finding.foreign:
                message = f"{message[:-1]}; other workflow tools have it."
                yield at(finding.node, message, finding.foreign.instead)
            elif finding.meant:
                message += f" Did you mean '{finding.meant}'?"
                yield at(finding.node, message, f"Write `{finding.meant}`, or remove the key.")
            else:
                yield at(finding.node, message, f"Use one of: {', '.join(finding.level.names())}.")


RULE = Rule(
    code="NOE101",
    name="unknown-key",
    severity="error",
    summary="A key is not part of the language at this level.",
    why="If NoETL ignored a misspelled key, the run would silently do something other than you meant.",
    fix="Correct the spelling, or remove the key. `noetl explain FIELD` lists the allowed keys; "
    "with `--tolerant`, unknown keys are warnings. For a key of another workflow tool, the message says what replaces it.",
    bad=GOOD.replace("desc:", "dscription:"),
    good=GOOD,
    check=check,
)
