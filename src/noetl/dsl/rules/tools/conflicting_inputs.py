"""NOE504 reports fields of a task that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import MapNode, Node, Scalar
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.tools.unread import is_unread
from noetl.dsl.shape import ShapeFinding
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workflow:
  - step: clean
    tool:
      kind: postgres
      auth: pg_main
      command: DELETE FROM cache
"""


def check(subject: Subject) -> Iterator[Found]:
    for finding in subject.shape:
        if finding.kind == "twice" and finding.tool is not None and not is_unread(subject, finding.node):
            names = [f"'{name}'" for name in finding.name.split(" or ")]
            listed = f"{', '.join(names[:-1])} and {names[-1]}"
            yield at(
                _place(finding),
                f"{listed} contradict each other: a task of kind '{finding.tool.name}' takes one of them.",
                f"Keep one of {listed}.",
            )


def _place(finding: ShapeFinding) -> Node:
    """Point at the last of the fields, in the order of the file."""
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
    group="tools",
    severity="error",
    summary="A task has two fields of which its kind takes only one.",
    why="Only one of them could be used, and which one is not visible in the playbook.",
    fix="Keep the one that is meant. To run several statements or commands, use the field that takes a list.",
    bad=GOOD.replace("FROM cache\n", "FROM cache\n      query: SELECT 1 AS one\n"),
    good=GOOD,
    check=check,
)
