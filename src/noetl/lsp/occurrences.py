"""Finds every place where a playbook names one of its own things: steps, tasks, iterators, keys, credentials.

Definition, references and rename all come from this one list. A name that could stand for several things stands for the one
that wins when the playbook runs. Tested in tests/unit/lsp/test_occurrences.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noetl.dsl.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.playbook import Arc, Step, Task
from noetl.dsl.scopes import step_writes
from noetl.dsl.subject import Subject
from noetl.lsp.occurrences_in_templates import in_templates
from noetl.lsp.things import Occurrence, Thing, named, part

_ROUTE_EDGE = "route_edge:"


def occurrences(subject: Subject) -> tuple[Occurrence, ...]:
    """Give every mention of a named thing, in order of place; a node that serves several places is there once for each."""
    found = [*_of_document(subject)]
    for step in subject.playbook.workflow:
        found += _of_step(subject, step)
    found += in_templates(subject)
    return tuple(sorted(set(found), key=lambda one: (one.start, one.end, one.thing)))


def _of_document(subject: Subject) -> Iterator[Occurrence]:
    playbook, root = subject.playbook, subject.root
    for entry in _entries(root.get("workload") if root else None):
        yield named(subject, entry.key, Thing("workload", entry.key.text), defines=True)
    yield from _keychain(subject, root.get("keychain") if root else None)
    for task in playbook.workbook:
        if task.label_at is not None:
            yield named(subject, task.label_at, Thing("workbook", task.label), defines=True)
        yield from _of_task(subject, task)
    for setting in ("entry_step", "final_step"):
        value = playbook.executor.spec.get(setting)
        if value is not None and isinstance(value.at, Scalar) and value.at.is_string:
            yield named(subject, value.at, Thing("step", value.at.text))
    fail = playbook.executor.spec.get("on_step_fail")
    yield from _edge(subject, fail.at if fail else None)


def _entries(node: Node | None) -> Iterable[Entry]:
    return node if isinstance(node, MapNode) else ()


def _keychain(subject: Subject, node: Node | None) -> Iterator[Occurrence]:
    for entry in _entries(node):
        yield named(subject, entry.key, Thing("credential", entry.key.text), defines=True)
    for item in node if isinstance(node, ListNode) else ():
        name = item.get("name") if isinstance(item, MapNode) else item
        if isinstance(name, Scalar) and name.value is not None:
            yield named(subject, name, Thing("credential", name.text), defines=True)


def _of_step(subject: Subject, step: Step) -> Iterator[Occurrence]:
    if step.name_at is not None:
        yield named(subject, step.name_at, Thing("step", step.name), defines=True)
    if step.compensate_at is not None and step.compensate is not None:
        yield named(subject, step.compensate_at, Thing("step", step.compensate))
    fail = step.spec.get("on_step_fail")
    yield from _edge(subject, fail.at if fail else None)
    yield from _of_loop(subject, step)
    for place, task in enumerate(step.tasks):
        yield from _label(subject, step, task)
        yield from _of_task(subject, task)
        yield from _jumps(subject, step, place)
        for key in _given(task.at, "input", "args"):
            yield named(subject, key, Thing("input", key.text, step.name), defines=True)
    for assign in step_writes(step):
        if assign.at is not None:
            yield from _write(subject, step, assign.at, assign.scope, assign.key)
    for key in _given(step.at, "input", "args"):
        yield named(subject, key, Thing("input", key.text, step.name), defines=True)
    for arc in step.arcs:
        yield from _of_arc(subject, arc)


def _given(node: Node | None, *names: str) -> Iterator[Scalar]:
    """Give the keys of the first of these maps that is there."""
    if isinstance(node, MapNode):
        for name in names:
            if name in node:
                yield from (entry.key for entry in _entries(node.get(name)))
                return


def _of_loop(subject: Subject, step: Step) -> Iterator[Occurrence]:
    loop = step.loop
    if loop is None:
        return
    if isinstance(loop.iterator_at, Scalar):
        yield named(subject, loop.iterator_at, Thing("iterator", loop.iterator, step.name), defines=True)
    reduce = loop.spec.get("reduce")
    for entry in _entries(reduce.at if reduce else None):
        scope, dot, key = entry.key.text.partition(".")
        if scope == "ctx" and dot:
            yield part(subject, entry.key, len(scope) + 1, Thing("ctx", key))
    cursor = (loop.cursor or {}).get("auth")
    yield from _credential(subject, cursor.at if cursor else None)


def _label(subject: Subject, step: Step, task: Task) -> Iterator[Occurrence]:
    """Give the definition of a label; one that was made from the step's name stands where the step's name does."""
    thing = Thing("task", task.label, step.name)
    if task.label_at is not None:
        yield named(subject, task.label_at, thing, defines=True)
    elif task.label == f"{step.name}_task" and step.name_at is not None:
        yield named(subject, step.name_at, thing, defines=True)._replace(spelled=False)
    elif task.at is not None:
        yield Occurrence(task.at.start, task.at.start, thing, defines=True, spelled=False)


def _of_task(subject: Subject, task: Task) -> Iterator[Occurrence]:
    yield from _credential(subject, task.auth.at if task.auth else None)
    if task.kind != "workbook":
        return
    called = task.fields.get("task")
    at = called.at if called else task.label_at
    if isinstance(at, Scalar) and at.value is not None:
        yield named(subject, at, Thing("workbook", at.text))


def _credential(subject: Subject, node: Node | None) -> Iterator[Occurrence]:
    if isinstance(node, Scalar) and node.is_string and "{" not in node.text:
        yield named(subject, node, Thing("credential", node.text))


def _jumps(subject: Subject, step: Step, place: int) -> Iterator[Occurrence]:
    labels = [task.label for task in step.tasks]
    for rule in step.tasks[place].rules or ():
        at = rule.then.at.get("to") if isinstance(rule.then.at, MapNode) else None
        if not isinstance(at, Scalar) or at.value is None:
            continue
        if at.text == "previous" and at.text not in labels:
            if place:
                yield Occurrence(at.start, at.end, Thing("task", labels[place - 1], step.name), spelled=False)
        else:
            yield named(subject, at, Thing("task", at.text, step.name))


def _write(subject: Subject, step: Step, at: Scalar, scope: str, key: str) -> Iterator[Occurrence]:
    """Give the definition that a `set` is; `at` is its key as written, with or without the scope."""
    name = key.partition(".")[0]
    thing = Thing("ctx", name) if scope == "ctx" else Thing("iter" if scope == "iter" else "scratch", name, step.name)
    if thing.kind == "iter" and step.loop and step.loop.iterator == name:
        thing = Thing("iterator", name, step.name)
    offset = len(at.text) - len(key)
    if offset >= 0:
        yield part(subject, at, offset, thing, length=len(name), defines=thing.kind != "iterator")


def _of_arc(subject: Subject, arc: Arc) -> Iterator[Occurrence]:
    if arc.step_at is not None:
        yield named(subject, arc.step_at, Thing("step", arc.step))
    for key in _given(arc.at, "args", "input"):
        yield named(subject, key, Thing("input", key.text, arc.step), defines=True)
    label = arc.at.get("label") if isinstance(arc.at, MapNode) else None
    if isinstance(label, Scalar) and label.value is not None:
        yield named(subject, label, Thing("edge", label.text), defines=True)


def _edge(subject: Subject, node: Node | None) -> Iterator[Occurrence]:
    if isinstance(node, Scalar) and node.text.startswith(_ROUTE_EDGE):
        label = node.text.removeprefix(_ROUTE_EDGE)
        yield part(subject, node, len(_ROUTE_EDGE), Thing("edge", label))
