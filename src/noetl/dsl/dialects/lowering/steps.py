"""The lowerings of one step, in the order in which they build on each other.

What cannot be lowered stays as it is, and is recorded. Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noetl.dsl.dialects.lowering import first, loops
from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.draft import (
    Fields,
    NoEquivalentError,
    Record,
    is_result_form,
    items_of,
    plain_name,
    value,
    word,
)
from noetl.dsl.dialects.lowering.names import ENVELOPE, renamed
from noetl.dsl.dialects.lowering.pipelines import Pipeline, add_sinks
from noetl.dsl.dialects.lowering.retries import lower_retry
from noetl.dsl.dialects.lowering.routing import has_older_arcs, is_arc, lower_arcs, lower_case
from noetl.dsl.dialects.lowering.tasks import add_sets, lower_task
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node

_OF_A_STEP: Final = frozenset({"case", "vars", "sink", "save", "retry", "result", "when"}) | first.OLDER
_COLLECTED: Final = {True: "outcome.result.results", False: "outcome.result"}
_STRATEGIES: Final = {
    "append": "", "extend": " | sum(start=[])", "concat": " | sum(start=[])", "replace": " | last", "last": " | last",
}  # fmt: skip
_OF_A_TASK: Final = ("retry", "sink", "save", "result")


def lower_step(node: MapNode, record: Record) -> MapNode:
    """Return a step in canonical form."""
    step = Fields(node)
    first.lower_name(step, record)
    name = plain_name(step.get("step")) or ""
    if not _OF_A_STEP.isdisjoint(step.entries) or first.is_named_tool(step.get("tool")):
        _try(
            step,
            record,
            next((name for name in step.entries if name in first.OLDER), "tool"),
            lambda: first.lower_typed(step, name, record),
        )
    _try(step, record, "loop", lambda: loops.lower_loop(step, record))
    if "tool" in step:
        _lower_tool(step, name, record)
    if not _OF_A_STEP.isdisjoint(step.entries):
        _lower_forms(step, name, record)
    _lower_arcs(step, record)
    return step.built()


def _try(step: Fields, record: Record, key: str, lower: Callable[[], None]) -> None:
    """Lower one form; leave the step as it was where that is not possible."""
    entries, mark = dict(step.entries), record.mark()
    try:
        lower()
    except NoEquivalentError as problem:
        step.reset(entries)
        record.rollback(mark)
        if key in entries:
            record.refuse(entries[key], problem)


def _lower_tool(step: Fields, name: str, record: Record) -> None:
    """Lower the tasks of a step."""
    tool = step.get("tool")
    if isinstance(tool, MapNode):
        new = _lower_task_node(tool, record)
        if new is not tool:
            step.put("tool", new)
    elif isinstance(tool, ListNode):
        items = tuple(_lower_task_node(item, record) for item in tool.items)
        if any(new is not old for new, old in zip(items, tool.items, strict=True)):
            step.put("tool", ListNode(tool.start, tool.end, items, tool.flow))
    tool = step.get("tool")
    if any(_has_form(task) for task in items_of(tool)):
        _lower_task_forms(step, name, record)


def _lower_task_node(node: Node, record: Record) -> Node:
    if not isinstance(node, MapNode):
        return node
    inner = _inner(node)
    if inner is None:
        return _lowered_task(node, record)
    made = _lowered_task(inner, record)
    if made is inner:
        return node
    fields = Fields(node)
    fields.put(node.entries[0].key.text, made)
    return fields.built()


def _lowered_task(node: MapNode, record: Record) -> MapNode:
    mark = record.mark()
    try:
        return lower_task(node, record)
    except NoEquivalentError as problem:
        record.rollback(mark)
        form = next((entry for entry in node.entries if entry.key.text in ("eval", "expr", "vars", "call")), None)
        if form is not None:
            record.refuse(form, problem)
        return node


def _inner(node: MapNode) -> MapNode | None:
    if len(node.entries) == 1 and "kind" not in node and isinstance(node.entries[0].value, MapNode):
        return node.entries[0].value
    return None


def _has_form(node: Node) -> bool:
    task = (_inner(node) or node) if isinstance(node, MapNode) else None
    return task is not None and any(_form_in(task, name) for name in _OF_A_TASK)


def _form_in(task: MapNode, name: str) -> bool:
    found = task.get(name)
    if name == "result":
        return is_result_form(found) and plain_name(task.get("kind")) != "noop"
    return found is not None


def _lower_task_forms(step: Fields, name: str, record: Record) -> None:
    """Lower what a task does beyond its call, with the pipeline that ends at it."""
    tool = step.get("tool")
    if isinstance(tool, MapNode):
        task = Fields(_inner(tool) or tool)
        for form in _OF_A_TASK:  # of the only task it is as on the step
            if _form_in(task.built(), form) and form not in step:
                step.add(task.pop(form))
        if _inner(tool) is not None:
            fields = Fields(tool)
            fields.put(tool.entries[0].key.text, task.built())
            step.put("tool", fields.built())
        else:
            step.put("tool", task.built())
        return
    if not isinstance(tool, ListNode):
        return
    made: list[Node] = []
    for index, item in enumerate(tool.items):
        made += _lower_one_of_several(step, item, index, name, record) if _has_form(item) else [item]
    step.put("tool", ListNode(tool.start, tool.end, tuple(made), tool.flow))


def _lower_one_of_several(step: Fields, item: Node, index: int, name: str, record: Record) -> list[Node]:
    """Return a task of a pipeline with the tasks that its forms stand for."""
    if not isinstance(item, MapNode):
        return [item]
    inner = _inner(item)
    task = Fields(inner or item)
    forms = {form: task.pop(form) for form in _OF_A_TASK if _form_in(task.built(), form)}
    label = item.entries[0].key if inner is not None else word(plain_name(item.get("name")) or f"task_{index}", item)
    made = task.built()
    if inner is not None or "name" not in item:
        made = MapNode(item.start, item.end, (Entry(label, made),))
    part = Fields(MapNode(item.start, item.end, ()))
    part.put("tool", ListNode(item.start, item.end, (made,)), item)
    for entry in forms.values():
        part.add(entry)
    _lower_writes(part, name, record)
    if any(form in part for form in forms):
        return [item]  # refused: as it was
    if isinstance(sets := part.get("set"), MapNode):
        add_sets(step, sets, record, ENVELOPE, sets)
    return list(items_of(part.get("tool")))


def _lower_forms(step: Fields, name: str, record: Record) -> None:
    _lower_writes(step, name, record)
    if "vars" in step:
        _try(step, record, "vars", lambda: _lower_vars(step, record))
    if "case" in step:
        _try(step, record, "case", lambda: _lower_case(step, name, record))
    if "when" in step or "pass" in step:
        key = "when" if "when" in step else "pass"
        _try(step, record, key, lambda: _lower_condition(step, record))


def _lower_writes(step: Fields, name: str, record: Record) -> None:
    """Lower what repeats the call of a step and what writes its result."""
    for form in ("retry", "result", "sink", "save"):
        if form in step:
            _try(step, record, form, lambda form=form: _lower_write(step, form, name, record))  # type: ignore[misc]


def _lower_write(step: Fields, form: str, name: str, record: Record) -> None:
    key, written = step.pop(form)
    pipeline = Pipeline(step, name)
    if form == "retry":
        lower_retry(pipeline, written, record, key)
    elif form == "result":
        _lower_result(step, pipeline, written, record)
    else:
        add_sinks(pipeline, written, "", record, by.SINK, key)
    pipeline.write_back()


def _lower_result(step: Fields, pipeline: Pipeline, written: Node, record: Record) -> None:
    if not isinstance(written, MapNode) or not is_result_form(written):
        raise NoEquivalentError(
            written, "`result` has more than `as`, `collect` and `sink`.", "Write `result: { as: <name> }`."
        )
    for key, node in written.entries:
        if key.text == "sink":
            add_sinks(pipeline, node, "", record, by.SINK, key)
        elif key.text == "as":
            _keep_result(step, node, "outcome.result", record, by.RESULT_AS)
        elif isinstance(node, MapNode):
            _lower_collect(step, node, record)
        else:
            _keep_result(step, node, _COLLECTED["loop" in step], record, by.RESULT_COLLECT)


def _lower_collect(step: Fields, node: MapNode, record: Record) -> None:
    """Keep the results of a loop, or a part of each, under a name."""
    for entry in node.entries:
        name, known = entry.key.text, ("into", "strategy", "path")
        if name not in known:
            fix = "Write `collect: { into: <name>, path: …, strategy: … }`."
            raise NoEquivalentError(entry.key, f"`{name}` is no part of `collect`.", fix, name, known)
    into, path = node.get("into"), plain_name(node.get("path"))
    strategy = plain_name(node.get("strategy")) or "append"
    if into is None:
        raise NoEquivalentError(node, "`collect` names no place for the results.", "Write `collect: { into: <name> }`.")
    if strategy not in _STRATEGIES:
        reason = f"The strategy `{strategy}` of `collect` is not known."
        raise NoEquivalentError(node.get("strategy") or node, reason, "Use append, extend or replace.")
    result = _COLLECTED["loop" in step]
    if "loop" not in step:
        _keep_result(step, into, f"{result}.{path}" if path else result, record, by.RESULT_COLLECT)
        return
    parts = f"{result} | map(attribute='{path}') | list" if path else result
    _keep_result(step, into, parts + _STRATEGIES[strategy], record, by.RESULT_COLLECT)


def _keep_result(step: Fields, named: Node, result: str, record: Record, lowering: by.Lowering) -> None:
    name = plain_name(named)
    if name is None:
        raise NoEquivalentError(named, "The result has no name.", "Write `as: <name>`.")
    record.note(lowering, named)
    sets = step.below("set", named)
    sets.put(f"ctx.{name.removeprefix('vars.').removeprefix('ctx.')}", value("{{ " + result + " }}", named), named)
    step.put("set", sets.built(), named)


def _lower_vars(step: Fields, record: Record) -> None:
    key, written = step.pop("vars")
    if not isinstance(written, MapNode):
        raise NoEquivalentError(written, "`vars` is a map of names and values.", "Write `vars: { <name>: … }`.")
    record.note(by.VARS, key)
    add_sets(step, written, record, ENVELOPE, key)


def _lower_case(step: Fields, name: str, record: Record) -> None:
    pipeline = Pipeline(step, name)
    lower_case(step, pipeline, record, loops="loop" in step)
    pipeline.write_back()


def _lower_condition(step: Fields, record: Record) -> None:
    if record.first or "pass" in step:
        first.lower_skip(step, record)
        return
    key, when = step.pop("when")
    record.note(by.STEP_GATE, key)
    first.put_gate(step, [{"when": when, "then": {"allow": True}}], key)


def _lower_arcs(step: Fields, record: Record) -> None:
    following = step.get("next")
    if is_arc(following) and not record.is_canonical:
        record.note(by.NEXT_MAP, step.key("next"))
        following = ListNode(following.start, following.end, (following,))
        step.put("next", following)
    if has_older_arcs(following, record):
        _try(step, record, "next", lambda: lower_arcs(step, record))
        following = step.get("next")
    if isinstance(following, MapNode | ListNode):
        made = _with_args(renamed(following, ENVELOPE, record, by.NAMES), record)
        if made is not following:
            step.put("next", made)
    sets = step.get("set")
    if sets is not None:
        new = renamed(sets, ENVELOPE, record, by.NAMES)
        if new is not sets:
            step.put("set", new)


def _with_args(following: Node, record: Record) -> Node:
    """Rename the inputs of arcs."""
    arcs = following.get("arcs") if isinstance(following, MapNode) else following
    if not isinstance(arcs, ListNode):
        return following
    items = tuple(_with_named_args(arc, record) if isinstance(arc, MapNode) else arc for arc in arcs.items)
    if all(new is old for new, old in zip(items, arcs.items, strict=True)):
        return following
    made = ListNode(arcs.start, arcs.end, items, arcs.flow)
    if not isinstance(following, MapNode):
        return made
    outer = Fields(following)
    outer.put("arcs", made)
    return outer.built()


def _with_named_args(arc: MapNode, record: Record) -> MapNode:
    older = next((name for name in ("with", "data") if name in arc), None)
    if older is None or "args" in arc or "input" in arc:
        return arc
    fields = Fields(arc)
    record.note(by.WITH, fields.key(older))
    fields.rename(older, "args")
    return fields.built()
