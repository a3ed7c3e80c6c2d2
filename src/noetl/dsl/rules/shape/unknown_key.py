"""NOE101 reports a key that the language does not have at this place."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject

BAD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workflow:
  - step: greet
    toool: { kind: noop }
    tool: { kind: noop }
"""


def check(subject: Subject) -> Iterator[Found]:
    for finding in subject.shape:
        if finding.kind == "unknown-key" and finding.tool is None:
            names = finding.level.names()
            message = f"Unknown key '{finding.name}' in {finding.level.name}.{did_you_mean(finding.name, names)}"
            yield at(finding.node, message, f"Use one of: {', '.join(names)}.")


RULE = Rule(
    code="NOE101",
    name="unknown-key",
    group="shape",
    severity="error",
    summary="A key is not part of the language at this place.",
    why="A misspelled key is ignored by most engines, and the run does something else than its author meant.",
    fix="Correct the spelling, or remove the key.",
    bad=BAD,
    good=BAD.replace("    toool: { kind: noop }\n", ""),
    check=check,
)
