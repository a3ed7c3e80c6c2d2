"""Find mentions of a playbook's steps, tasks, iterators, keys and credentials.

A name with several meanings means the one that wins at run time. Tested in tests/unit/authoring/analysis/test_occurrences.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from noetl.authoring.language.template_tokens import tokens
from noetl.dsl.analysis.references import Reference
from noetl.dsl.analysis.scopes import FINAL_ARGS, step_writes
from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.reading.source_map import locate
from noetl.dsl.tree.playbook import Arc, Step, Task, default_label

_ROUTE_EDGE = "route_edge:"
_OF_STEPS = frozenset({"done", "ok", "fail"})
# Kind of a key below each scope; those of `iter`, `step`, `args` and `input` belong to the step.
_BELOW: dict[str, ThingKind] = {
    "workload": "workload", "ctx": "ctx", "vars": "ctx", "iter": "iter", "step": "scratch", "args": "input",
    "input": "input", "keychain": "credential",
}  # fmt: skip
_OWNED = frozenset({"iter", "scratch", "input"})
ThingKind = Literal[
    "step", "task", "iterator", "workload", "ctx", "iter", "scratch", "input", "workbook", "credential", "edge"
]


class Thing(NamedTuple):
    """Named element of a playbook; `owner` is its step, if any."""

    kind: ThingKind
    name: str
    owner: str = ""


class Occurrence(NamedTuple):
    """One mention: its range, and whether it defines the thing."""

    start: int
    end: int
    thing: Thing
    defines: bool = False
    spelled: bool = True  # False if the text is not the name itself, such as `previous`


def named(subject: CheckContext, node: Scalar, thing: Thing, *, defines: bool = False) -> Occurrence:
    """Return the mention of a whole scalar."""
    return part(subject, node, 0, thing, length=len(node.text), defines=defines)


def part(
    subject: CheckContext, node: Scalar, offset: int, thing: Thing, *, length: int | None = None, defines: bool = False
) -> Occurrence:
    """Return the mention of a part of a scalar; without a length, the rest of it."""
    end = len(node.text) if length is None else offset + length
    start = locate(subject.source, node, offset)
    return Occurrence(start, locate(subject.source, node, end - 1) + 1 if end > offset else start, thing, defines)


def occurrences(subject: CheckContext) -> tuple[Occurrence, ...]:
    """Return every mention, sorted; a shared node appears once per use."""
    found = [*_of_document(subject)]
    for step in subject.playbook.workflow:
        found += _of_step(subject, step)
    found += in_templates(subject)
    if subject.lowered.changes:  # what stands for an older form is spelled otherwise in the text
        text = subject.source.text
        found = [one for one in found if not one.spelled or text[one.start : one.end] == one.thing.name]
    return tuple(sorted(set(found), key=lambda one: (one.start, one.end, one.thing)))


def _of_document(subject: CheckContext) -> Iterator[Occurrence]:
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


def _keychain(subject: CheckContext, node: Node | None) -> Iterator[Occurrence]:
    for entry in _entries(node):
        yield named(subject, entry.key, Thing("credential", entry.key.text), defines=True)
    for item in node if isinstance(node, ListNode) else ():
        name = item.get("name") if isinstance(item, MapNode) else item
        if isinstance(name, Scalar) and name.value is not None:
            yield named(subject, name, Thing("credential", name.text), defines=True)


def _of_step(subject: CheckContext, step: Step) -> Iterator[Occurrence]:
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
        for key in _input_keys(task.at, "input", "args"):
            yield named(subject, key, Thing("input", key.text, step.name), defines=True)
    for assign in step_writes(step):
        if assign.at is not None:
            yield from _write(subject, step, assign.at, assign.scope, assign.key)
    for key in _input_keys(step.at, "input", "args"):
        yield named(subject, key, Thing("input", key.text, step.name), defines=True)
    for arc in step.arcs:
        yield from _of_arc(subject, arc)


def _input_keys(node: Node | None, *names: str) -> Iterator[Scalar]:
    if isinstance(node, MapNode):
        for name in names:
            if name in node:
                yield from (entry.key for entry in _entries(node.get(name)))
                return


def _of_loop(subject: CheckContext, step: Step) -> Iterator[Occurrence]:
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


def _label(subject: CheckContext, step: Step, task: Task) -> Iterator[Occurrence]:
    """Yield a label's definition; a generated one is at the step's name."""
    thing = Thing("task", task.label, step.name)
    if task.label_at is not None:
        yield named(subject, task.label_at, thing, defines=True)
    elif task.label == default_label(step.name) and step.name_at is not None:
        yield named(subject, step.name_at, thing, defines=True)._replace(spelled=False)
    elif task.at is not None:
        yield Occurrence(task.at.start, task.at.start, thing, defines=True, spelled=False)


def _of_task(subject: CheckContext, task: Task) -> Iterator[Occurrence]:
    yield from _credential(subject, task.auth.at if task.auth else None)
    if task.kind != "workbook":
        return
    called = task.fields.get("task")
    at = called.at if called else task.label_at
    if isinstance(at, Scalar) and at.value is not None:
        yield named(subject, at, Thing("workbook", at.text))


def _credential(subject: CheckContext, node: Node | None) -> Iterator[Occurrence]:
    if isinstance(node, Scalar) and node.is_string and "{" not in node.text:
        yield named(subject, node, Thing("credential", node.text))


def _jumps(subject: CheckContext, step: Step, place: int) -> Iterator[Occurrence]:
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


def _write(subject: CheckContext, step: Step, at: Scalar, scope: str, key: str) -> Iterator[Occurrence]:
    """Yield the definition made by `set`; `at` is its key, with or without scope."""
    name = key.partition(".")[0]
    thing = Thing("ctx", name) if scope == "ctx" else Thing("iter" if scope == "iter" else "scratch", name, step.name)
    if thing.kind == "iter" and step.loop and step.loop.iterator == name:
        thing = Thing("iterator", name, step.name)
    offset = len(at.text) - len(key)
    if offset >= 0:
        yield part(subject, at, offset, thing, length=len(name), defines=thing.kind != "iterator")


def _of_arc(subject: CheckContext, arc: Arc) -> Iterator[Occurrence]:
    if arc.step_at is not None:
        yield named(subject, arc.step_at, Thing("step", arc.step))
    for key in _input_keys(arc.at, "args", "input"):
        yield named(subject, key, Thing("input", key.text, arc.step), defines=True)
    label = arc.at.get("label") if isinstance(arc.at, MapNode) else None
    if isinstance(label, Scalar) and label.value is not None:
        yield named(subject, label, Thing("edge", label.text), defines=True)


def _edge(subject: CheckContext, node: Node | None) -> Iterator[Occurrence]:
    if isinstance(node, Scalar) and node.text.startswith(_ROUTE_EDGE):
        label = node.text.removeprefix(_ROUTE_EDGE)
        yield part(subject, node, len(_ROUTE_EDGE), Thing("edge", label))


def in_templates(subject: CheckContext) -> Iterator[Occurrence]:
    """Yield every mention inside a template."""
    for reference in subject.references:
        for depth, thing in _mentions(subject, reference):
            found = _element(subject, reference, depth, thing)
            if found is not None:
                yield found
    for site in subject.sites:
        yield from _step_functions(subject, site)


def _mentions(subject: CheckContext, reference: Reference) -> Iterator[tuple[int, Thing]]:
    meaning = reference.means[0] if reference.means else None
    site, name = reference.site, reference.name
    owner = site.step.name if site.step else ""
    match meaning:
        case "scope":
            yield from _below_scope(subject, reference, owner)
        case "step":
            yield 0, Thing("step", name)
            yield from _labels(reference, subject.playbook.step(name), 1)
        case "label":
            yield 0, Thing("task", name, owner)
        case "iter":
            yield 0, _iteration(site.step, name, owner)
        case "input":
            yield 0, Thing("input", name, owner)
            yield from _final_results(subject, reference, 0)
        case "ctx":
            yield 0, Thing("ctx", name)
        case "workload":
            yield 0, Thing("workload", name)


def _below_scope(subject: CheckContext, reference: Reference, owner: str) -> Iterator[tuple[int, Thing]]:
    if reference.name in ("outcome", "output") and reference.site.task is None:
        depth = 2 if reference.key in ("result", "data") else 1
        yield from _labels(reference, reference.site.step, depth)
    kind, key = _BELOW.get(reference.name), reference.key
    if kind is None or key is None:
        return
    if kind == "iter":
        yield 1, _iteration(reference.site.step, key, owner)
    else:
        yield 1, Thing(kind, key, owner if kind in _OWNED else "")
    if kind == "input":
        yield from _final_results(subject, reference, 1)


def _iteration(step: Step | None, key: str, owner: str) -> Thing:
    is_iterator = step is not None and step.loop is not None and step.loop.iterator == key
    return Thing("iterator" if is_iterator else "iter", key, owner)


def _labels(reference: Reference, step: Step | None, depth: int) -> Iterator[tuple[int, Thing]]:
    """Yield the label in `step.results.<label>` or `step.<label>`; a loop has none."""
    if step is None or step.loop is not None:
        return
    path, labels = reference.read.path, {task.label for task in step.tasks}
    if len(path) > depth and path[depth] == "data" and "data" not in labels:
        depth += 1
    if len(path) > depth and path[depth] == "results" and "results" not in labels:
        depth += 1
    if len(path) > depth and path[depth] in labels:
        yield depth, Thing("task", str(path[depth]), step.name)


def _final_results(subject: CheckContext, reference: Reference, depth: int) -> Iterator[tuple[int, Thing]]:
    path, step = reference.read.path, reference.site.step
    final = subject.playbook.executor.setting("final_step")
    is_final = step is not None and step.name == final and "results" in FINAL_ARGS
    if is_final and len(path) > depth + 1 and path[depth] == "results" and isinstance(path[depth + 1], str):
        yield depth + 1, Thing("step", str(path[depth + 1]))


def _element(subject: CheckContext, reference: Reference, depth: int, thing: Thing) -> Occurrence | None:
    text, name = reference.site.node.text, thing.name
    offset = reference.read.offsets[depth]
    if text[offset : offset + 1] in ("'", '"'):
        offset += 1
    if not text.startswith(name, offset):
        return None
    return part(subject, reference.site.node, offset, thing, length=len(name))


def _step_functions(subject: CheckContext, site: TemplateSite) -> Iterator[Occurrence]:
    if site.template is None or not any(word in site.node.text for word in _OF_STEPS):
        return
    code = tokens(site.node.text)
    for number in range(len(code) - 2):
        function, bracket, name = code[number : number + 3]
        is_method = number > 0 and code[number - 1].text == "."
        if function.text in _OF_STEPS and bracket.text == "(" and name.kind == "text" and not is_method:
            yield part(subject, site.node, name.start + 1, Thing("step", name.value), length=len(name.value))
