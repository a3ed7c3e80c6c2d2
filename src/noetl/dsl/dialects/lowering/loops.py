"""Loops with older names, and the steps of `type: iterator`.

Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

from typing import Any, Final

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.draft import (
    Fields,
    NoEquivalentError,
    Record,
    is_null,
    plain_name,
    value,
)
from noetl.dsl.dialects.lowering.names import renamed
from noetl.dsl.dialects.lowering.tasks import lower_task
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar

OLDER: Final = frozenset({"collection", "element", "items", "max_concurrency"})
_PARALLEL: Final = ("async", "parallel", "concurrent")


def lower_loop(step: Fields, record: Record) -> None:
    """Rename the fields of a loop."""
    node = step.get("loop")
    if not isinstance(node, MapNode) or (OLDER.isdisjoint(node.keys) and plain_name(node.get("mode")) != "async"):
        return
    loop = Fields(node)
    _rename(loop, record)
    step.put("loop", loop.built())


def _rename(loop: Fields, record: Record) -> None:
    for old, new in (("collection", "in"), ("items", "in"), ("element", "iterator")):
        if old in loop and new not in loop:
            record.note(by.LOOP_KEYS, loop.key(old))
            loop.rename(old, new)
    if "max_concurrency" in loop and "max_in_flight" not in loop:
        key = loop.key("max_concurrency")
        record.note(by.LOOP_LIMIT, key)
        spec = loop.get("spec")
        if "mode" not in loop and not (isinstance(spec, MapNode) and "mode" in spec):
            loop.put("mode", value("parallel", key), key)
        loop.rename("max_concurrency", "max_in_flight")
    mode = loop.get("mode")
    if mode is not None and plain_name(mode) in _PARALLEL:
        loop.put("mode", value("parallel", mode))


def lower_iterator(step: Fields, name: str, record: Record) -> None:
    """Turn a step of `type: iterator` into a loop over its task."""
    key, _ = step.pop("type")
    if "task" not in step and "tool" not in step:
        raise NoEquivalentError(key, "The iterator has no `task` to repeat.", "Write `task: { type: … }`.")
    record.note(by.ITERATOR, key)
    loop = Fields(MapNode(key.start, key.end, ()))
    for field in ("collection", "items", "in", "element", "iterator", "mode", "max_concurrency", "max_in_flight"):
        if field in step:
            entry = step.pop(field)
            loop.add(entry)
    _rename(loop, record)
    item = plain_name(loop.get("iterator")) or "item"
    if "iterator" not in loop:
        loop.put("iterator", value(item, key), key)
    step.put("loop", loop.built(), key)
    field = "task" if "task" in step else "tool"
    written = step.pop(field)
    tool = _tasks(written.value, written.key, name, item, record)
    step.put("tool", renamed(tool, _names_of(name, item), record, by.LOOP_NAMES), written.key)


def _tasks(node: Node, key: Scalar, name: str, item: str, record: Record) -> Node:
    if plain_name(node) is not None:
        return value({"kind": "workbook", "task": node}, key)
    if isinstance(node, ListNode):
        return ListNode(node.start, node.end, tuple(_tasks(each, key, name, item, record) for each in node.items))
    if not isinstance(node, MapNode):
        raise NoEquivalentError(key, "The task of the iterator is no task.", "Write `task: { type: … }`.")
    if plain_name(node.get("type")) == "iterator":
        raise NoEquivalentError(
            node,
            "An iterator inside an iterator has no place in one step.",
            "Call a playbook that has the inner iterator.",
        )
    inner = node.entries[0].value if len(node.entries) == 1 else None
    if isinstance(inner, MapNode):
        made = _tasks(inner, key, name, item, record)
        fields = Fields(node)
        fields.put(node.entries[0].key.text, made)
        return fields.built()
    task = Fields(lower_task(node, record))
    if plain_name(task.get("kind")) == "workbook" and "task" not in task and "name" in task:
        task.rename("name", "task")
    if plain_name(task.get("kind")) == "playbook":
        _give_child(task, name, item, record, key)
    return task.built()


def _give_child(task: Fields, name: str, item: str, record: Record, key: Scalar) -> None:
    """Pass the workload, the element and `_loop` to a child playbook."""
    record.note(by.ITERATOR_CHILD, key)
    field = next((one for one in ("input", "args", "payload") if one in task), "input")
    given = task.get(field)
    workload = record.root.get("workload")
    inputs: dict[str, Any] = {}
    if isinstance(workload, MapNode):
        inputs |= {
            entry.key.text: "{{ workload." + entry.key.text + " }}"
            for entry in workload
            if entry.key.text.isidentifier()
        }
    inputs[item] = "{{ iter." + item + " }}"
    inputs["_loop"] = {
        "loop_id": "{{ execution_id ~ ':" + name + "' }}",
        "current_index": "{{ iter.index }}",
        "current_item": "{{ iter." + item + " }}",
    }
    made = Fields(MapNode(key.start, key.end, ()))
    for each, data in inputs.items():
        made.put(each, value(data, key), key)
    if isinstance(given, MapNode):
        for entry in given.entries:
            made.add(entry)
    elif not is_null(given):
        raise NoEquivalentError(key, "The inputs of a child playbook are a map.", "Write `with: { <name>: … }`.")
    task.put(field, made.built(), key)


def _names_of(name: str, item: str) -> dict[str, str]:
    """Return what `_loop` of an iterator is today."""
    return {
        "_loop.loop_id": f"(execution_id ~ ':{name}')",
        "_loop.current_index": "iter.index",
        "_loop.current_item": f"iter.{item}",
    }
