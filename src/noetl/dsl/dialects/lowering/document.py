"""Lower a document: every older form becomes the canonical one.

One pass, before normalisation and checks. A canonical document is returned as it is, after a look at its keys.
Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from noetl.dsl.dialects.lowering import first, loops, tasks
from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.conditions import conjunction, expression_of, template
from noetl.dsl.dialects.lowering.draft import (
    Change,
    Fields,
    Record,
    Refusal,
    items_of,
    maps_of,
    plain_name,
    value,
    word,
)
from noetl.dsl.dialects.lowering.lowerings import Dialect
from noetl.dsl.dialects.lowering.names import may_rename
from noetl.dsl.dialects.lowering.routing import is_arc
from noetl.dsl.dialects.lowering.steps import lower_step
from noetl.dsl.dialects.lowering.workbook import call_sinks, lower_workbook
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.reading.parse import Document

_STEP: Final = frozenset({"case", "vars", "sink", "save", "retry", "result", "when", "name"}) | first.OLDER
_TASK: Final = tasks.OLDER | {"retry", "sink", "save", "result"}
_OF_AN_ARC: Final = frozenset({"then", "else", "with", "data"})
_METADATA: Final = ("name", "path", "version", "description", "labels", "tags")
_OLD_API: Final = ("noetl.io/v1", "noetl.io/v2")
_FAILED: Final = re.compile(r"""\b(fail|ok|done)\(\s*(['"])([^'"]+)\2\s*\)""")


class Lowered(Struct, frozen=True):
    """A document in canonical form, and how it became that."""

    root: Node | None
    changes: tuple[Change, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """The older dialects of the document."""
        return tuple(sorted({change.lowering.dialect for change in self.changes}))


def lower(document: Document) -> Lowered:
    """Lower a document; what cannot be lowered stays as it is. Never raises."""
    root = document.root
    if not isinstance(root, MapNode):
        return Lowered(root)
    steps = root.get("steps") if "workflow" not in root else root.get("workflow")
    written = next((entry for entry in root.entries if entry.key.text == "steps"), None)
    if written is not None and ("workflow" in root or not isinstance(steps, ListNode)):
        return Lowered(root, refusals=(_refused_steps(written, both="workflow" in root),))
    if not isinstance(steps, ListNode):
        return Lowered(root)
    if "workflow" in root and not _is_first(root) and not _has_forms(root, steps):
        return Lowered(root)
    record = Record(root, first="workflow" not in root or _runs_in_order(steps), names=lambda: _names(root, steps))
    return _lowered(root, steps, record)


def _refused_steps(steps: Entry, *, both: bool) -> Refusal:
    """Return why `steps` cannot be read."""
    if both:
        reason = "The playbook has both `steps` and `workflow`, and it can run only one of them."
        return Refusal(steps.key, steps.value, steps.key, reason, "Keep one of them.")
    reason = "`steps` takes a list of steps, and this is none."
    return Refusal(steps.key, steps.value, steps.value, reason, "Write `- name: <step>` for each of them.")


def _lowered(root: MapNode, steps: ListNode, record: Record) -> Lowered:
    fields = Fields(root)
    if "workflow" not in fields:
        record.note(by.STEPS, fields.key("steps"))
        fields.rename("steps", "workflow")
    sinks = lower_workbook(fields, record)
    items: list[Node] = [lower_step(item, record) if isinstance(item, MapNode) else item for item in steps.items]
    items = [call_sinks(item, sinks, record) for item in items]
    if record.first:
        items = _in_order(items)
    items = _watched(items, record)
    items += record.added
    if record.changes or record.refusals:
        items += _end(items, record)
    if len(items) != len(steps.items) or any(new is not old for new, old in zip(items, steps.items, strict=True)):
        fields.put("workflow", ListNode(steps.start, steps.end, tuple(items), steps.flow))
    _lower_head(fields, record)
    _lower_metadata(fields, record)
    _lower_entry(fields, items, record)
    if any(change.lowering is by.STEP_GATE for change in record.changes):
        _put_setting(fields, "on_parked", "finish", by.PARKED, record)
    return Lowered(fields.built(), tuple(record.changes), tuple(record.refusals))


def _describes_itself(root: MapNode) -> bool:
    """Return whether a v1 document has its name or its path on the root."""
    return ("name" in root or "path" in root) and _is_first(root)


def _is_first(root: MapNode) -> bool:
    return plain_name(root.get("apiVersion")) == "noetl.io/v1" or _has_no_head(root)


def _has_no_head(root: MapNode) -> bool:
    """Return whether a document of the first dialect says so only by its keys."""
    return "steps" in root and {"apiVersion", "kind", "workflow"}.isdisjoint(root.keys)


def _lower_head(fields: Fields, record: Record) -> None:
    if _has_no_head(fields.node):
        at = fields.node.entries[0].key
        record.note(by.HEAD, at)
        fields.put("apiVersion", value("noetl.io/v1", at), at)
        fields.put("kind", value("Playbook", at), at)


def _lower_metadata(fields: Fields, record: Record) -> None:
    if not _describes_itself(fields.node):
        return
    names = [name for name in _METADATA if name in fields]
    at = fields.key(names[0])
    metadata = fields.below("metadata", at)
    names = [name for name in names if name not in metadata]
    if not names:
        return  # both are there: the checker reports it
    for name in names:
        record.note(by.METADATA, fields.key(name))
        metadata.add(fields.pop(name))
    fields.put("metadata", metadata.built(), at)


def _has_forms(root: MapNode, steps: ListNode) -> bool:
    """Return whether a document may have an older form; looks at keys only."""
    for step in steps.items:
        if isinstance(step, MapNode) and (not _STEP.isdisjoint(step.keys) or _has_inner_forms(step)):
            return True
    workbook = root.get("workbook")
    entries = [entry.value for entry in workbook] if isinstance(workbook, MapNode) else items_of(workbook)
    return any(_is_older_task(task) for task in entries) or _starts_elsewhere(root, steps)


def _has_inner_forms(step: MapNode) -> bool:
    loop = step.get("loop")
    if loop is not None and isinstance(loop, MapNode) and not loops.OLDER.isdisjoint(loop.keys):
        return True
    tool = step.get("tool")
    if first.is_named_tool(tool):
        return True
    if isinstance(tool, MapNode):
        if _is_older_task(tool):
            return True
    elif isinstance(tool, ListNode) and any(map(_is_older_task, tool.items)):
        return True
    following = step.get("next")
    if is_arc(following):
        return True
    if isinstance(following, MapNode):
        following = following.get("arcs")
    return (isinstance(following, ListNode) and any(map(_is_older_arc, following.items))) or (
        (sets := step.get("set")) is not None and may_rename(sets)
    )


def _is_older_arc(arc: Node) -> bool:
    if not isinstance(arc, MapNode):
        return False
    keys = arc.keys
    if not _OF_AN_ARC.isdisjoint(keys):
        return True
    when = arc.get("when")
    return (isinstance(when, Scalar) and may_rename(when)) or any(
        name in keys and may_rename(found) for name in ("args", "input", "set") if (found := arc.get(name)) is not None
    )


def _is_older_task(node: Node) -> bool:
    if not isinstance(node, MapNode):
        return False
    if len(node.entries) == 1 and isinstance(node.entries[0].value, MapNode):
        node = node.entries[0].value
    inner = node.get("tool")
    if isinstance(inner, MapNode):
        node = inner
    return not _TASK.isdisjoint(node.keys) or tasks.is_older(node)


def _runs_in_order(steps: ListNode) -> bool:
    """Return whether steps of the first dialect under `workflow` ran in file order."""
    every = list(maps_of(steps))
    return (
        len(every) > 1
        and any("type" in step for step in every)
        and not any("next" in step or "case" in step for step in every)
    )


def _in_order(items: list[Node]) -> list[Node]:
    made: list[Node] = []
    for index, item in enumerate(items):
        following = items[index + 1] if index + 1 < len(items) else None
        name = plain_name(following.get("step")) if isinstance(following, MapNode) else None
        if name is not None and isinstance(item, MapNode) and "next" not in item and following is not None:
            fields = Fields(item)
            fields.put("next", word(name, item), item)
            made.append(fields.built())
        else:
            made.append(item)
    return made


def _names(root: MapNode, steps: ListNode) -> frozenset[str]:
    """Return the names that templates may read besides those of the language."""
    return frozenset(_defined(root, steps))


def _defined(root: MapNode, steps: ListNode) -> Iterator[str]:
    workload = root.get("workload")
    if isinstance(workload, MapNode):
        yield from workload.keys
    for step in maps_of(steps):
        for field in ("step", "name"):
            if (name := plain_name(step.get(field))) is not None:
                yield name
        for holder in (step.get("loop"), step):
            if isinstance(holder, MapNode):
                yield from filter(None, (plain_name(holder.get("iterator")), plain_name(holder.get("element"))))
        for field in ("vars", "set", "set_ctx"):
            if isinstance(written := step.get(field), MapNode):
                yield from (key.rpartition(".")[2] for key in written.keys)
        tool = step.get("tool")
        for task in maps_of(tool):
            if isinstance(tool, ListNode) and len(task.entries) == 1:
                yield task.entries[0].key.text
            elif isinstance(tool, ListNode) and (label := plain_name(task.get("name"))) is not None:
                yield label
        following = step.get("next")
        for arc in maps_of(following.get("arcs") if isinstance(following, MapNode) else following):
            for field in ("args", "with", "data", "input"):
                if isinstance(args := arc.get(field), MapNode):
                    yield from args.keys


def _starts_elsewhere(root: MapNode, steps: ListNode) -> bool:
    if plain_name(root.get("apiVersion")) not in _OLD_API:
        return False
    names = [plain_name(step.get("step")) for step in steps.items if isinstance(step, MapNode)]
    return "start" in names[1:] and names[0] != "start" and _setting(root, "entry_step") is None


def _setting(root: MapNode, name: str) -> Node | None:
    executor = root.get("executor")
    spec = executor.get("spec") if isinstance(executor, MapNode) else None
    return spec.get(name) if isinstance(spec, MapNode) else None


def _lower_entry(fields: Fields, items: list[Node], record: Record) -> None:
    workflow = fields.get("workflow")
    if isinstance(workflow, ListNode) and not record.first and _starts_elsewhere(fields.built(), workflow):
        step = next(item for item in items if isinstance(item, MapNode) and plain_name(item.get("step")) == "start")
        _put_setting(fields, "entry_step", "start", by.START, record, step.get("step"))


def _put_setting(
    fields: Fields, name: str, data: str, lowering: by.Lowering, record: Record, at: Node | None = None
) -> None:
    if _setting(fields.built(), name) is not None:
        return
    at = at or next((change.at for change in record.changes), fields.node)
    record.note(lowering, at)
    executor = fields.below("executor", at)
    spec = executor.below("spec", at)
    spec.put(name, value(data, at), at)
    executor.put("spec", spec.built(), at)
    fields.put("executor", executor.built(), at)


def _end(items: list[Node], record: Record) -> list[Node]:
    """Return the step `end`, where arcs lead to it and no step has that name."""
    names = {plain_name(item.get("step")) for item in items if isinstance(item, MapNode)}
    if "end" in names:
        return []
    for item in items:
        for target in _targets(item):
            if plain_name(target) == "end":
                record.note(by.END, target)
                return [value({"step": "end"}, target)]
    return []


def _targets(step: Node) -> Iterator[Node]:
    following = step.get("next") if isinstance(step, MapNode) else None
    if isinstance(following, MapNode):
        following = following.get("arcs")
    for arc in items_of(following):
        target = arc.get("step") if isinstance(arc, MapNode) else arc
        if target is not None:
            yield target


def _watched(items: list[Node], record: Record) -> list[Node]:
    """Move arcs that wait for the end of a sibling to that sibling."""
    moved: dict[str, list[MapNode]] = {}
    made = [_without_watching(item, moved, record) for item in items]
    if not moved:
        return items
    return [_with_watching(item, moved) for item in made]


def _without_watching(item: Node, moved: dict[str, list[MapNode]], record: Record) -> Node:
    following = item.get("next") if isinstance(item, MapNode) else None
    if not isinstance(item, MapNode) or not isinstance(following, ListNode):
        return item
    direct = {plain_name(arc.get("step")) for arc in following.items if isinstance(arc, MapNode) and "when" not in arc}
    kept: list[Node] = []
    for arc in following.items:
        watched = _sibling(arc, direct) if isinstance(arc, MapNode) else None
        if watched is None or not isinstance(arc, MapNode):
            kept.append(arc)
            continue
        record.note(by.WATCHED, arc)
        name, when = watched
        fields = Fields(arc)
        fields.put("when", value(when, arc))
        moved.setdefault(name, []).append(fields.built())
    if len(kept) == len(following.items):
        return item
    fields = Fields(item)
    fields.put("next", ListNode(following.start, following.end, tuple(kept), following.flow))
    return fields.built()


def _sibling(arc: MapNode, direct: set[str | None]) -> tuple[str, str] | None:
    """Return the sibling that an arc waits for, and the condition of its own arc."""
    when = arc.get("when")
    if not isinstance(when, Scalar) or "(" not in when.text:
        return None
    found = _FAILED.fullmatch(expression_of(when)) if isinstance(when.value, str) else None
    if found is None or found[3] not in direct:
        return None
    event = {"fail": "event.name == 'step.failed'", "ok": "event.name != 'step.failed'", "done": "true"}[found[1]]
    return found[3], template(conjunction(event))


def _with_watching(item: Node, moved: dict[str, list[MapNode]]) -> Node:
    name = plain_name(item.get("step")) if isinstance(item, MapNode) else None
    arcs = moved.get(name or "")
    if not arcs or not isinstance(item, MapNode):
        return item
    fields = Fields(item)
    following = fields.get("next")
    own = list(items_of(following.get("arcs") if isinstance(following, MapNode) and "arcs" in following else following))
    at = arcs[0]
    spec = following.get("spec") if isinstance(following, MapNode) else None
    settings = {} if spec is None else {"spec": spec}
    fields.put("next", value(settings | {"arcs": [*arcs, *map(_as_arc, own)]}, at), at)
    return fields.built()


def _as_arc(node: Node) -> Node:
    if isinstance(node, MapNode):
        return node
    return MapNode(node.start, node.end, (Entry(word("step", node), node),))
