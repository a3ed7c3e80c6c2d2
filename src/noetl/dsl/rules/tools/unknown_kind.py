"""NOE501 reports a task or a cursor with an unknown tool kind."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.shape import is_template
from noetl.dsl.reading.nodes import MapNode, Node, Scalar

GOOD = example("""\
workflow:
  - step: greet
    tool:
      kind: python
      code: result = "hello"
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for node in _kinds(subject):
        name = node.text
        if name in subject.kinds or subject.is_misread(node):
            continue
        if is_template(node):
            yield at(
                node,
                "The kind of a task cannot be a template; it must be known before the run.",
                "Write the name of the kind.",
            )
            continue
        message = f"There is no tool kind '{name}'.{subject.suggestions.did_you_mean(name, subject.kinds)}"
        yield at(
            node, message, f"Use one of: {', '.join(sorted(subject.kinds))}; or install the package that provides it."
        )


def _kinds(subject: CheckContext) -> Iterator[Scalar]:
    playbook = subject.playbook
    places: list[Node | None] = [task.at for task in playbook.workbook]
    for step in playbook.workflow:
        if step.loop and step.loop.cursor and isinstance(step.loop.at, MapNode):
            places.append(step.loop.at.get("cursor"))
        places.extend(task.at for task in step.tasks)
    for place in places:
        kind = place.get("kind") if isinstance(place, MapNode) else None
        if isinstance(kind, Scalar) and kind.value is not None and kind.text:
            yield kind


RULE = Rule(
    code="NOE501",
    name="unknown-kind",
    severity="error",
    summary="A task names a tool kind that does not exist.",
    why="No worker could run the task. A kind from a package is known only where that package is installed.",
    fix="Correct the name, or install the package that provides the kind. `noetl explain` lists the kinds.",
    bad=GOOD.replace("kind: python", "kind: pyton"),
    good=GOOD,
    check=check,
)
