"""Tasks of the workbook: what they are, and `sink` and `retry` on them.

A called task is one task, so its sink becomes a task of the workbook too, and each step that calls the one calls the other
after it. Tested in tests/unit/dsl/dialects/test_lowering.py and tests/dialects/test_dialects.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering import tasks
from noetl.dsl.dialects.lowering.conditions import template
from noetl.dsl.dialects.lowering.draft import Fields, NoEquivalentError, Record, items_of, plain_name, value, word
from noetl.dsl.dialects.lowering.names import reads_any, texts
from noetl.dsl.dialects.lowering.pipelines import Pipeline, sink_task
from noetl.dsl.dialects.lowering.retries import lower_retry
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar

_SINKS: Final = ("sink", "save")
_READS_INPUT: Final = frozenset({"input", "args"})
_RESULTS: Final = ("response", "result", "this")


class Sink(Struct, frozen=True):
    """A task of the workbook that writes the result of another one."""

    name: str
    takes: str  # the input that holds the result
    reads_input: bool
    at: Scalar


Sinks = dict[str, list[Sink]]  # by the name of the task that they follow


def lower_workbook(root: Fields, record: Record) -> Sinks:
    """Lower the tasks of the workbook; return the sinks that their callers call."""
    node = root.get("workbook")
    if not isinstance(node, MapNode | ListNode):
        return {}
    sinks: Sinks = {}
    taken = {name for name, _ in _named(node)}
    made: list[Any] = []
    for item in node.entries if isinstance(node, MapNode) else node.items:
        entry, writes = _lowered(item, record, sinks, taken)
        made.append(entry)
        made += [
            Entry(word(name, at), task) if isinstance(node, MapNode) else _item(name, task) for name, task, at in writes
        ]
    if isinstance(node, MapNode):
        new: Node = MapNode(node.start, node.end, tuple(made), node.flow)
        same = len(made) == len(node.entries) and all(
            a.value is b.value for a, b in zip(made, node.entries, strict=True)
        )
    else:
        new = ListNode(node.start, node.end, tuple(made), node.flow)
        same = len(made) == len(node.items) and all(a is b for a, b in zip(made, node.items, strict=True))
    if not same:
        root.put("workbook", new)
    return sinks


def _item(name: str, task: MapNode) -> MapNode:
    return MapNode(task.start, task.end, (Entry(word(name, task), task),))


def _named(node: Node) -> Iterator[tuple[str, MapNode]]:
    """Yield the tasks of a workbook, or one task of it, with their names."""
    pairs = node.entries if isinstance(node, MapNode) else ()
    for entry in pairs:
        if isinstance(entry.value, MapNode):
            yield entry.key.text, entry.value
    for item in node.items if isinstance(node, ListNode) else ():
        if isinstance(item, MapNode):
            only = item.entries[0] if len(item.entries) == 1 else None
            if only is not None and isinstance(only.value, MapNode):
                yield only.key.text, only.value
            elif (name := plain_name(item.get("name"))) is not None:
                yield name, item


_Write = tuple[str, MapNode, Node]


def _lowered(item: Any, record: Record, sinks: Sinks, taken: set[str]) -> tuple[Any, list[_Write]]:
    """Return a task in today's form, and the tasks that write its result."""
    if isinstance(item, Entry):
        made, writes = _task_of(item.key.text, item.value, record, sinks, taken)
        return (item if made is item.value else Entry(item.key, made)), writes
    named = next(_named(ListNode(item.start, item.end, (item,))), None)
    if named is None:
        return item, []
    name, task = named
    made, writes = _task_of(name, task, record, sinks, taken)
    if task is item or made is task:
        return (made if task is item else item), writes
    fields = Fields(item)
    fields.put(name, made)
    return fields.built(), writes


def _task_of(name: str, node: Node, record: Record, sinks: Sinks, taken: set[str]) -> tuple[Node, list[_Write]]:
    if not isinstance(node, MapNode):
        return node, []
    outer = Fields(node)
    _each(outer, record, ("type", "action", "call", "with", "eval", "expr", "vars"), lambda task: _today(task, record))
    _each(outer, record, ("retry",), lambda task: _retried(task, name, record))
    found: list[_Write] = []
    for form in _SINKS:
        _each(outer, record, (form,), lambda task, form=form: _split(task, name, form, record, sinks, taken, found))  # type: ignore[misc]
    return outer.built(), found


def _each(outer: Fields, record: Record, keys: tuple[str, ...], lower: Callable[[Fields], None]) -> None:
    """Lower a form of a task, and of the one under its `tool`; record a refusal."""
    holders = [outer]
    if isinstance(inner := outer.get("tool"), MapNode):
        holders.append(Fields(inner))
    for holder in holders:
        entries, mark = dict(holder.entries), record.mark()
        try:
            lower(holder)
        except NoEquivalentError as problem:
            holder.reset(entries)
            record.rollback(mark)
            form = next((entries[name] for name in keys if name in entries), None)
            if form is not None:
                record.refuse(form, problem)
        if holder is not outer and holder.changed:
            outer.put("tool", holder.built())


def _today(task: Fields, record: Record) -> None:
    made = Fields(tasks.lower_task(task.built(), record))
    task.reset(made.entries)


def _retried(task: Fields, name: str, record: Record) -> None:
    if "retry" not in task:
        return
    key, written = task.pop("retry")
    holder = Fields(MapNode(key.start, key.end, ()))
    inner = task.get("tool")
    holder.put("tool", inner if isinstance(inner, MapNode) else task.built(), key)
    pipeline = Pipeline(holder, name)
    lower_retry(pipeline, written, record, key)
    if len(pipeline.tasks) > 1:
        fix = "Call the task from a step, with `retry` on the task of the step."
        raise NoEquivalentError(key, "A task of the workbook is one task, so it cannot ask for pages.", fix)
    pipeline.write_back()
    made = holder.get("tool")
    if isinstance(inner, MapNode) and made is not None:
        task.put("tool", made)
    elif isinstance(made, MapNode):
        task.reset(Fields(made).entries)


def _split(
    task: Fields, name: str, form: str, record: Record, sinks: Sinks, taken: set[str], found: list[_Write]
) -> None:
    """Make tasks of the workbook of what a task writes."""
    if form not in task:
        return
    key, written = task.pop(form)
    _require_steps(name, key, record)
    items = list(items_of(written))
    if not items:
        raise NoEquivalentError(
            key, "A sink without a tool writes nothing.", "Name the tool: `sink: { tool: { kind: … } }`."
        )
    made: list[tuple[Sink, MapNode]] = []
    for item in items:
        takes = (
            "result" if not any("input.result" in text or "args.result" in text for text in texts(item)) else "called"
        )
        writes = sink_task(item, record, {**dict.fromkeys(_RESULTS, f"input.{takes}")})
        called = next(one for one in _names(f"{name}_sink") if one not in taken)
        taken.add(called)
        own = _inputs_of(task)
        fields = Fields(writes)
        if own is not None and reads_any(writes, _READS_INPUT) and "input" not in fields:
            fields.put("input", own)
        made.append((Sink(called, takes, reads_any(item, _READS_INPUT), key), fields.built()))
    record.note(by.WORKBOOK_SINK, key)
    sinks.setdefault(name, []).extend(sink for sink, _ in made)
    found += [(sink.name, writes, key) for sink, writes in made]


def _names(wanted: str) -> Iterator[str]:
    yield wanted
    yield from (f"{wanted}_{number}" for number in range(2, 1000))


def _inputs_of(task: Fields) -> Node | None:
    for holder in (task, Fields(inner) if isinstance(inner := task.get("tool"), MapNode) else task):
        for field in ("input", "args"):
            if isinstance(holder.get(field), MapNode):
                return holder.get(field)
    return None


def _require_steps(name: str, key: Scalar, record: Record) -> None:
    """Raise NoEquivalentError where a task is called by one that cannot call its sink."""
    if any(called.text == name for called in _calls(record.root.get("workbook"))):
        reason = f"The task `{name}` is called by another task of the workbook, which cannot call its sink."
        raise NoEquivalentError(key, reason, "Write the sink on the steps that call the task.")


def _calls(node: Node | None) -> Iterator[Scalar]:
    """Yield the names of tasks that a part of the document calls."""
    if isinstance(node, ListNode):
        for item in node.items:
            yield from _calls(item)
    elif isinstance(node, MapNode):
        kind = plain_name(node.get("kind")) or plain_name(node.get("type"))
        called = node.get("call") or (
            next(filter(None, map(node.get, ("task", "name"))), None) if kind == "workbook" else None
        )
        if isinstance(called, Scalar):
            yield called
        for entry in node.entries:
            yield from _calls(entry.value)


def call_sinks(step: Node, sinks: Sinks, record: Record) -> Node:
    """Return a step that calls the sinks of the tasks that it calls."""
    if not isinstance(step, MapNode) or not sinks or "tool" not in step:
        return step
    fields = Fields(step)
    pipeline = Pipeline(fields, plain_name(step.get("step")) or "")
    made: list[tuple[Scalar, Fields]] = []
    for label, task in pipeline.tasks:
        made.append((label, task))
        for sink in sinks.get(_called(label, task) or "", ()):
            if sink.reads_input and reads_any(task.built(), frozenset({"_prev"})):
                reason = "The sink reads the inputs of its task, and a call gives one of `_prev`, which is not there any more."
                problem = NoEquivalentError(label, reason, "Read the task before by its label instead of `_prev`.")
                record.refuse(Entry(sink.at, sink.at), problem)
            wanted = pipeline.label("sink", (one.text for one, _ in made))
            made.append((word(wanted, label), Fields(_call_of(sink, task))))
    pipeline.tasks = made
    pipeline.write_back()
    return fields.built()


def _called(label: Scalar, task: Fields) -> str | None:
    if plain_name(task.get("kind")) != "workbook":
        return None
    return plain_name(task.get("task")) or plain_name(task.get("name")) or label.text


def _call_of(sink: Sink, task: Fields) -> MapNode:
    inputs: dict[str, Any] = {}
    field = "args" if "args" in task and "input" not in task else "input"
    given = task.get(field)
    if sink.reads_input and isinstance(given, MapNode):
        inputs |= {entry.key.text: entry.value for entry in given.entries}
    inputs[sink.takes] = template("_prev")
    made = value({"kind": "workbook", "task": sink.name, "input": inputs, "spec": {"sink": True}}, sink.at)
    assert isinstance(made, MapNode)
    return made
