"""What a playbook needs of the installation: kinds, stores, compressions, sources.

Which of them exist is known outside: `Unavailable` answers it. Tested in tests/unit/dsl/checking/test_uses.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from noetl.dsl.reading.nodes import MapNode, Node, Scalar
from noetl.dsl.tree.playbook import Playbook, Task, Value

What = Literal["kind", "store", "compression", "script source", "transfer source", "transfer target"]
# Returns why a name cannot be used and what to do, or None where it can.
Unavailable = Callable[[What, str], str | None]
_ENDS: tuple[tuple[What, str], ...] = (("transfer source", "source"), ("transfer target", "target"))
_SCHEMES = {"s3://": "s3", "gs://": "gcs"}


class Use(NamedTuple):
    """One thing that a playbook needs, and where it says so."""

    what: What
    name: str
    at: Node
    owner: str  # `step 'a'`, for messages without a position


def uses(playbook: Playbook) -> Iterator[Use]:
    """Yield what the playbook needs; workbook tasks that no step calls need nothing."""
    yield from _result(playbook.executor.spec.get("result"), "`executor`")
    for step in playbook.workflow:
        owner = f"step '{step.name}'"
        yield from _result(step.spec.get("result"), owner)
        if step.loop is not None:
            yield from _result(step.loop.spec.get("result"), owner)
            cursor = step.loop.cursor or {}
            yield from _named("kind", cursor["kind"].at if "kind" in cursor else None, owner)
        for task in step.tasks:
            yield from _task(task, owner)
    for task in _called(playbook):
        yield from _task(task, f"workbook task '{task.label}'")


def _called(playbook: Playbook) -> list[Task]:
    workbook = {task.label: task for task in playbook.workbook}
    pending = [task for step in playbook.workflow for task in step.tasks]
    called: dict[str, Task] = {}
    while pending:
        task = pending.pop()
        named = task.fields.get("task")
        name = str(named.data) if named else task.label
        if task.kind == "workbook" and name in workbook and name not in called:
            called[name] = workbook[name]
            pending.append(workbook[name])
    return list(called.values())


def _task(task: Task, owner: str) -> Iterator[Use]:
    yield from _named("kind", _inside(task.at, "kind"), owner)
    yield from _result(task.spec.get("result"), owner)
    fields = {name: value.at for name, value in task.fields.items()}
    if task.kind == "artifact":
        yield from _store(fields.get("store"), owner)
    elif task.kind == "transfer":
        for what, end in _ENDS:
            place = fields.get(end)
            yield from _named(what, _inside(place, "kind") or _inside(place, "type"), owner)
    yield from _script(fields.get("uri"), fields.get("source") if task.kind == "script" else None, owner)
    yield from _script(_inside(fields.get("script"), "uri"), _inside(fields.get("script"), "source"), owner)


def _script(uri: Node | None, source: Node | None, owner: str) -> Iterator[Use]:
    kind = _inside(source, "type")
    if kind is not None:
        yield from _named("script source", kind, owner)
    elif isinstance(uri, Scalar):
        for scheme, name in _SCHEMES.items():
            if uri.text.startswith(scheme):
                yield Use("script source", name, uri, owner)


def _result(value: Value | None, owner: str) -> Iterator[Use]:
    if value is not None:
        yield from _store(_inside(value.at, "store"), owner)


def _store(node: Node | None, owner: str) -> Iterator[Use]:
    yield from _named("store", _inside(node, "kind") or node, owner)
    yield from _named("compression", _inside(node, "compression"), owner)


def _inside(node: Node | None, name: str) -> Node | None:
    return node.get(name) if isinstance(node, MapNode) else None


def _named(what: What, node: Node | None, owner: str) -> Iterator[Use]:
    if isinstance(node, Scalar) and isinstance(node.value, str) and "{{" not in node.value:
        yield Use(what, node.value, node, owner)
