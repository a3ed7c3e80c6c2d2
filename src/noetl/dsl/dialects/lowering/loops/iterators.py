"""Steps of `type: iterator`: loops over their task, and iterators inside them.

A step has one loop, so the tasks of an inner iterator are a cycle in the pipeline: one task takes the next element, the last
one jumps back. Tested in tests/unit/dsl/dialects/test_lowering.py and tests/dialects/test_dialects.py.
"""

from __future__ import annotations

from typing import Any, Final

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.conditions import expression_of, template
from noetl.dsl.dialects.lowering.draft import Fields, NoEquivalentError, Record, items_of, plain_name, value, word
from noetl.dsl.dialects.lowering.loops.child import Iteration, give_child
from noetl.dsl.dialects.lowering.loops.fields import rename_fields
from noetl.dsl.dialects.lowering.names import names_read, renamed
from noetl.dsl.dialects.lowering.tasks import lower_task
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar

_OF_A_LOOP: Final = ("collection", "items", "in", "element", "iterator", "mode", "max_concurrency", "concurrency",
                     "max_in_flight")  # fmt: skip
_NOT_OF_A_LOOP: Final = {
    "where": "Filter the list: `collection: \"{{ workload.rows | selectattr('open') | list }}\"`.",
    "filter": "Filter the list: `collection: \"{{ workload.rows | selectattr('open') | list }}\"`.",
    "limit": 'Cut the list: `collection: "{{ workload.rows[:10] }}"`.',
    "order_by": "Sort the list: `collection: \"{{ workload.rows | sort(attribute='name') }}\"`.",
    "chunk": 'Make lists of the list: `collection: "{{ workload.rows | batch(10) | list }}"`.',
    "enumerate": "Templates read the index as `{{ iter.index }}`, without a setting.",
}
_CHOSEN_BY: Final = ("type", "tool")
_OF_AN_INNER: Final = frozenset({"type", "name", "desc", "description", "task", "tool", *_OF_A_LOOP})


def iterator_key(node: MapNode | Fields) -> str:
    """Return the key that makes a step or a task an iterator; empty if none does."""
    return next((name for name in _CHOSEN_BY if plain_name(node.get(name)) == "iterator"), "")


def lower_iterator(step: Fields, name: str, record: Record) -> None:
    """Turn a step of `type: iterator` into a loop over its task."""
    key, _ = step.pop(iterator_key(step))
    loop = _loop_of(step, key)
    record.note(by.ITERATOR, key)
    rename_fields(loop, record)
    item = plain_name(loop.get("iterator")) or "item"
    if "iterator" not in loop:
        loop.put("iterator", value(item, key), key)
    step.put("loop", loop.built(), key)
    field = "task" if "task" in step else "tool"
    written = step.pop(field)
    step.put("tool", _repeated(written, Iteration(name, item, "iter.index"), record), written.key)


def _loop_of(holder: Fields, key: Scalar) -> Fields:
    """Take the fields of the loop from those of an iterator."""
    if "task" not in holder and "tool" not in holder:
        raise NoEquivalentError(key, "The iterator has no `task` to repeat.", "Write `task: { type: … }`.")
    for name, fix in _NOT_OF_A_LOOP.items():
        if name in holder:
            raise NoEquivalentError(holder.key(name), f"A loop has no `{name}`.", fix)
    loop = Fields(MapNode(key.start, key.end, ()))
    for field in _OF_A_LOOP:
        if field in holder:
            loop.add(holder.pop(field))
    return loop


def _repeated(written: Entry, over: Iteration, record: Record) -> Node:
    """Return the tasks that run for each element, with the names of today."""
    made = _tasks(written.value, written.key, over, record)
    for name in names_read(made, "_loop"):
        if name not in over.names:
            known = "`_loop` has `loop_id`, `current_index` and `current_item`"
            raise NoEquivalentError(
                written.key, f"{known}, and no `{name.removeprefix('_loop.')}`.", "Use one of them."
            )
    return renamed(made, over.names, record, by.LOOP_NAMES)


def _tasks(node: Node, key: Scalar, over: Iteration, record: Record) -> Node:
    if plain_name(node) is not None:
        return value({"kind": "workbook", "task": node}, key)
    if isinstance(node, ListNode):
        items: list[Node] = []
        for each in node.items:
            made = _tasks(each, key, over, record)
            items += made.items if isinstance(made, ListNode) else [made]
        return ListNode(node.start, node.end, tuple(items))
    if not isinstance(node, MapNode):
        raise NoEquivalentError(key, "The task of the iterator is no task.", "Write `task: { type: … }`.")
    if iterator_key(node):
        return _inner(node, over, record)
    only = node.entries[0] if len(node.entries) == 1 else None
    if only is not None and isinstance(only.value, MapNode):
        made = _tasks(only.value, key, over, record)
        if isinstance(made, ListNode):
            return made
        fields = Fields(node)
        fields.put(only.key.text, made)
        return fields.built()
    task = Fields(lower_task(_with_name(node), record))
    if plain_name(task.get("kind")) == "workbook" and "task" not in task and "name" in task:
        task.rename("name", "task")
    if plain_name(task.get("kind")) == "playbook":
        give_child(task, over, record, key)
    return task.built()


def _with_name(node: MapNode) -> MapNode:
    """Return a task whose name is under `name`; `task` named it too."""
    kind = next((kind for name in ("type", "kind", "tool") if (kind := plain_name(node.get(name)))), None)
    if "name" in node or kind in (None, "workbook", "playbook") or plain_name(node.get("task")) is None:
        return node
    fields = Fields(node)
    fields.rename("task", "name")
    return fields.built()


def _inner(node: MapNode, around: Iteration, record: Record) -> ListNode:
    """Return the tasks of an iterator inside another one."""
    holder = Fields(node)
    key = holder.pop(iterator_key(node)).key
    for entry in node.entries:
        if entry.key.text not in _OF_AN_INNER:
            reason = f"`{entry.key.text}` of an iterator inside an iterator has no equivalent."
            raise NoEquivalentError(entry.key, reason, "Write it on the task of the inner iterator, or on the step.")
    loop = _loop_of(holder, key)
    rename_fields(loop, record)
    item = plain_name(loop.get("iterator")) or "item"
    if item in around.items:
        reason = f"The inner iterator has the same `element` as the one around it, `{item}`."
        raise NoEquivalentError(loop.key("iterator") if "iterator" in loop else key, reason, "Give it another name.")
    if "in" not in loop:
        raise NoEquivalentError(key, "The inner iterator has no `collection`.", 'Write `collection: "{{ … }}"`.')
    record.note(by.INNER_ITERATOR, key)
    over = Iteration(f"{around.name}.{item}", item, f"iter.{item}_index", around)
    written = holder.pop("task" if "task" in holder else "tool")
    made = _cycle(items_of(_repeated(written, over, record)), loop.get("in"), item, plain_name(holder.get("name")), key)
    return _described(made, holder)


def _described(tasks: ListNode, holder: Fields) -> ListNode:
    """Return the tasks with the description of their iterator on the last one."""
    said = next((name for name in ("desc", "description") if name in holder), None)
    if said is None:
        return tasks
    *before, last = tasks.items
    assert isinstance(last, MapNode)
    outer, inner = Fields(last), Fields(Fields(last).below(last.entries[0].key.text, last).node)
    inner.add(holder.entries[said])
    outer.put(last.entries[0].key.text, inner.built())
    return ListNode(tasks.start, tasks.end, (*before, outer.built()))


def _cycle(tasks: Any, collection: Node | None, item: str, name: str | None, at: Scalar) -> ListNode:
    """Return the tasks with those that take the next element and jump back.

    The last one has the name of the iterator, so its results are read by it.
    """
    last = name or f"{item}_end"
    index, listed, results = f"iter.{item}_index", f"iter.{item}_list", f"iter.{item}_results"
    given = expression_of(collection)
    begin = _control({listed: f"({given}) | default([], true)", index: "0", results: "[]"}, [], at)
    is_over = {"when": template(f"{index} >= {listed} | length"), "then": {"do": "jump", "to": last}}
    take = _control({f"iter.{item}": f"{listed}[{index}] | default(none)"}, [is_over], at)
    again = {"else": {"then": {"do": "jump", "to": f"{item}_each"}}}
    keep = _control({results: f"{results} + [_prev]", index: f"{index} + 1"}, [again], at)
    total = template(f"{results} | length")
    stats = {"total": total, "succeeded": total, "failed": 0, "skipped": 0}
    end = {"kind": "noop", "result": {"results": template(results), "stats": stats}}
    inner = [_labelled(task, f"{item}_task", number) for number, task in enumerate(tasks, 1)]
    head: list[Any] = [{f"{item}_begin": begin}, {f"{item}_each": take}]
    made = value([*head, *inner, {f"{item}_next": keep}, {last: end}], at)
    assert isinstance(made, ListNode)
    return made


def _control(sets: dict[str, str], rules: list[dict[str, Any]], at: Node) -> Node:
    """Return a task that sets values of the iteration and chooses the next task."""
    spec: dict[str, Any] = {"sink": True}
    if rules:
        last = [] if "else" in rules[-1] else [{"else": {"then": {"do": "continue"}}}]
        spec["policy"] = {"rules": [*rules, *last]}
    return value({"kind": "noop", "set": {name: template(one) for name, one in sets.items()}, "spec": spec}, at)


def _labelled(task: Node, label: str, number: int) -> Node:
    """Return a task with a label, its own one if it has it."""
    if not isinstance(task, MapNode) or len(task.entries) == 1:
        return task
    named = task.get("name")
    if named is not None and plain_name(task.get("kind")) not in ("workbook", "playbook"):
        return task
    key = word(label if number == 1 else f"{label}_{number}", task)
    return MapNode(task.start, task.end, (Entry(key, task),))
