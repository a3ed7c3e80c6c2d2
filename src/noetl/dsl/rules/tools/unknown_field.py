"""NOE502 reports a field that the task's kind does not have."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example

GOOD = example("""\
workflow:
  - step: fetch
    tool:
      kind: http
      url: "https://example.org/data"
      headers: { Accept: application/json }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind != "unknown-key" or finding.tool is None or subject.is_misread(finding.owner or finding.node):
            continue
        kind, name = finding.tool, finding.name
        meant = finding.meant
        message = f"Kind '{kind.name}' has no field '{name}'."
        if finding.foreign:
            message = f"{message[:-1]}; other workflow tools have it."
            yield at(finding.node, message, finding.foreign.instead)
        elif meant:
            yield at(finding.node, f"{message} Did you mean '{meant}'?", f"Write `{meant}`, or remove the field.")
        else:
            own = ", ".join(known.name for known in kind.input.fields)
            yield at(finding.node, message, f"Its fields are: {own}. Put values for templates and code into `input`.")


RULE = Rule(
    code="NOE502",
    name="unknown-field",
    severity="error",
    summary="A task has a field that its kind does not have.",
    why="The tool would be called without the value that you meant to pass.",
    fix="Correct the spelling, move the value to `input`, or remove it. `noetl explain KIND` lists the fields of a kind.",
    bad=GOOD.replace("headers:", "heders:"),
    good=GOOD,
    check=check,
)
