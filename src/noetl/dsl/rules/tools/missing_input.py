"""NOE503 reports a task without a field that its kind requires."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.shape import ShapeFinding
from noetl.dsl.grammar.kinds import Kind
from noetl.dsl.reading.nodes import MapNode, Node

GOOD = example("""\
workflow:
  - step: fetch
    tool:
      kind: http
      url: "https://example.org/data"
      method: GET
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind == "missing" and finding.tool is not None and not subject.is_misread(finding.node):
            yield at(_place(finding.node), _message(finding, finding.tool), _fix(finding, finding.tool))


def _place(task: Node) -> Node:
    """Return the node of the kind, which requires the field."""
    kind = task.get("kind") if isinstance(task, MapNode) else None
    return kind or task


def _message(finding: ShapeFinding, kind: Kind) -> str:
    if finding.field is None:
        names = " or ".join(f"'{name}'" for name in finding.name.split(" or "))
        return f"A task of kind '{kind.name}' needs {names}, but has none of them."
    message = f"A task of kind '{kind.name}' needs '{finding.name}', which is missing."
    need = next((need for need in kind.needs if finding.name in need.fields), None)
    if need is not None:
        with_what = f"'{need.field}'" if need.value is None else f"`{need.field}: {need.value}`"
        message = f"A task of kind '{kind.name}' with {with_what} also needs '{finding.name}', which is missing."
    return message


def _fix(finding: ShapeFinding, kind: Kind) -> str:
    known = finding.field
    if known is None:
        first = kind.input.field(finding.name.split(" or ")[0])
        example = f", e.g. `{first.name}: {first.example}`" if first and first.example else ""
        return f"Add exactly one of them{example}."
    example = f" For example: `{known.name}: {known.example}`." if known.example else ""
    need = next((need for need in kind.needs if known.name in need.fields and need.value is None), None)
    instead = f" Or remove `{need.field}`." if need else ""
    return f"Add `{known.name}`. {known.summary}{example}{instead}"


RULE = Rule(
    code="NOE503",
    name="missing-input",
    severity="error",
    summary="A task lacks a field that its kind requires.",
    why="The tool would reject the call, after everything before it has run.",
    fix="Add the field. `noetl explain KIND` describes every field and shows examples.",
    bad=GOOD.replace('      url: "https://example.org/data"\n', ""),
    good=GOOD,
    check=check,
)
