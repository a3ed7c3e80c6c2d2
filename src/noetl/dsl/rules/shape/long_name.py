"""NOE137 reports a name that is too long for a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode, Node, Scalar
from noetl.dsl.tree.playbook import Value

GOOD = example("""\
workflow:
  - step: load
    spec: { pool: gpu }
    tool: { kind: noop }
""")
MOST = 200


def check(subject: CheckContext) -> Iterator[Finding]:
    for what, name, node in _names(subject):
        if len(name) > MOST and node is not None:
            message = f"The {what} has {len(name):,} characters; it may have {MOST}."
            yield at(node, message, "Choose a shorter name.")


def _names(subject: CheckContext) -> Iterator[tuple[str, str, Node | None]]:
    playbook, metadata = subject.playbook, subject.root.get("metadata") if subject.root else None
    for key in ("path", "name"):
        node = metadata.get(key) if isinstance(metadata, MapNode) else None
        if isinstance(node, Scalar):
            yield f"`{key}` of the playbook", node.text, node
    yield from _workers(playbook.executor.spec)
    for step in playbook.workflow:
        yield "name of the step", step.name, step.name_at
        yield from _workers(step.spec)
    for task in playbook.all_tasks:
        yield "label of the task", task.label, task.label_at


def _workers(spec: Mapping[str, Value]) -> Iterator[tuple[str, str, Node | None]]:
    pool, requires = spec.get("pool"), spec.get("requires")
    if pool is not None and isinstance(pool.data, str):
        yield "name of the pool", pool.data, pool.at
    tags = requires.data.get("tags") if requires is not None and isinstance(requires.data, dict) else None
    if requires is not None and isinstance(tags, list):
        yield "list of tags", " ".join(map(str, tags)), requires.at


RULE = Rule(
    code="NOE137",
    name="long-name",
    severity="error",
    summary=f"The path of a playbook, or the name of a step, task or pool, has more than {MOST} characters.",
    why="Stores find executions and work by these names, and an index holds no longer ones.",
    fix="Choose a shorter name, and describe in `desc` what it means.",
    bad=GOOD.replace("step: load", f"step: load_{'and_load_' * 30}"),
    good=GOOD,
    check=check,
)
