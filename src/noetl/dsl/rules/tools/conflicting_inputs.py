"""NOE504 reports fields of a task that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.shape import ShapeFinding
from noetl.dsl.grammar.wording import listed
from noetl.dsl.reading.nodes import MapNode, Node, Scalar

GOOD = example("""\
workflow:
  - step: clean
    tool:
      kind: postgres
      auth: pg_main
      command: DELETE FROM cache
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind == "twice" and finding.tool is not None and not subject.is_misread(finding.node):
            names = listed(finding.name.split(" or "))
            yield at(
                _place(finding),
                f"{names} exclude each other: a task of kind '{finding.tool.name}' takes only one of them.",
                f"Keep one of {names}.",
            )


def _place(finding: ShapeFinding) -> Node:
    """Return the key of the last of the fields in the file."""
    task, tool = finding.node, finding.tool
    spec = task.get("spec") if isinstance(task, MapNode) else None
    names: set[str] = set()
    for name in finding.name.split(" or "):
        known = tool.input.field(name) if tool else None
        names.update((known.name, *known.aliases) if known else (name,))
    keys: list[Scalar] = []
    for place in (task, spec):
        keys += [entry.key for entry in place if entry.key.text in names] if isinstance(place, MapNode) else []
    return max(keys, key=lambda key: key.start, default=task)


RULE = Rule(
    code="NOE504",
    name="conflicting-inputs",
    severity="error",
    summary="A task has two fields, but its kind takes only one of them.",
    why="Only one of them could take effect, and the playbook does not show which one.",
    fix="Keep one of them. To run several statements or commands, use the field that takes a list.",
    bad=GOOD.replace("FROM cache\n", "FROM cache\n      query: SELECT 1 AS one\n"),
    good=GOOD,
    check=check,
)
