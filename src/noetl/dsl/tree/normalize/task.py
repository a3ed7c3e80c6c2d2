"""Normalize tasks and their policies in all their forms."""

from __future__ import annotations

from msgspec.structs import replace

from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.forms import is_labelled
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.tree.normalize.settings import settings
from noetl.dsl.tree.normalize.values import (
    assigns,
    canonical_data,
    first,
    optional,
    plain_text,
    scalar,
    text,
    value,
    values,
)
from noetl.dsl.tree.playbook import Action, Task, TaskRule, Value, default_label

SPEC_NAMES = frozenset(LEVELS["task_spec"].names())
_TAKEN = frozenset(LEVELS["task"].names()) - {"idempotent", "priority"}
_IN_SPEC = ("idempotent", "priority", "assert")


def tasks(node: Node | None, step_name: str) -> tuple[Task, ...]:
    """Return the pipeline of a step, in any form."""
    if isinstance(node, MapNode):
        if is_labelled(node):
            return tuple(filter(None, [_labelled(node.entries[0])]))
        return (_task(node, default_label(step_name), None),)
    if not isinstance(node, ListNode):
        return ()
    pipeline: list[Task] = []
    for index, item in enumerate(node):
        if not isinstance(item, MapNode):
            continue
        if is_labelled(item):
            pipeline.append(_labelled(item.entries[0]))
        else:
            named = scalar(first(item, "name", *(("task",) if plain_text(item.get("kind")) == "playbook" else ())))
            pipeline.append(_task(item, (text(named) or f"task_{index}") if named else f"task_{index}", named))
    return tuple(pipeline)


def with_output(pipeline: tuple[Task, ...], *nodes: Node | None) -> tuple[Task, ...]:
    """Merge the `output` of a step into its last task, whose own settings win."""
    for output in nodes:
        if isinstance(output, MapNode) and pipeline:
            last = pipeline[-1]
            own = last.spec.get("result")
            given = own.data if own is not None and isinstance(own.data, dict) else {}
            result = Value({**_with_output(None, output), **given}, output)
            pipeline = (*pipeline[:-1], replace(last, spec={**last.spec, "result": result}))
    return pipeline


def with_assertions(pipeline: tuple[Task, ...], node: Node | None) -> tuple[Task, ...]:
    """Merge a step's `assert`: its first task expects, its last one returns."""
    if not isinstance(node, MapNode) or not pipeline:
        return pipeline
    made = list(pipeline)
    for name, at in (("expects", 0), ("returns", _giving(pipeline))):
        given = node.get(name)
        if given is None:
            continue
        task = made[at]
        own = task.spec.get("assert")
        known = own.data if own is not None and isinstance(own.data, dict) else {}
        paths = [*dict.fromkeys([*_paths(known.get(name)), *_paths(canonical_data(given))])]
        made[at] = replace(task, spec={**task.spec, "assert": Value({**known, name: paths}, node)})
    return tuple(made)


def _giving(pipeline: tuple[Task, ...]) -> int:
    """Return which task gives the result: the last one that does not only write."""
    writes = [task.spec["sink"].data is True if "sink" in task.spec else False for task in pipeline]
    return max((at for at, only in enumerate(writes) if not only), default=len(pipeline) - 1)


def _paths(data: object) -> list[object]:
    return data if isinstance(data, list) else [] if data is None else [data]


def workbook(node: Node | None) -> tuple[Task, ...]:
    """Return the named tasks of the `workbook`, a list or a map."""
    if isinstance(node, MapNode):
        return tuple(_entry_task(entry.key.text, entry.key, entry.value) for entry in node)
    if not isinstance(node, ListNode):
        return ()
    pipeline: list[Task] = []
    for index, item in enumerate(node):
        if not isinstance(item, MapNode):
            continue
        if "tool" not in item and is_labelled(item):
            pipeline.append(_labelled(item.entries[0]))
        else:
            named = scalar(item.get("name"))
            pipeline.append(_entry_task(text(named) or f"task_{index}", named, item))
    return tuple(pipeline)


def _entry_task(label: str, label_at: Scalar | None, node: Node) -> Task:
    if isinstance(node, MapNode):
        inner = node.get("tool")
        return _task(inner if isinstance(inner, MapNode) else node, label, label_at)
    return Task(label, "", {}, at=node, label_at=label_at)


def _labelled(entry: Entry) -> Task:
    return _entry_task(entry.key.text, entry.key, entry.value)


def _task(node: MapNode, label: str, label_at: Scalar | None) -> Task:
    kind = plain_text(node.get("kind"))
    spec = node.get("spec")
    policy = spec.get("policy") if isinstance(spec, MapNode) else None
    rules_node = policy.get("rules") if isinstance(policy, MapNode) else None
    merged = _promoted(node, spec)
    fields = {
        entry.key.text: value(entry.value)
        for entry in merged
        if entry.key.text not in _TAKEN and entry.key.text not in _IN_SPEC
    }
    payload = _payload(fields) if kind == "playbook" else {}
    name = merged.get("name")
    if kind == "workbook" and "task" not in fields and name is not None:
        fields["task"] = value(name)
    unmatched = text(policy.get("on_unmatched")) if isinstance(policy, MapNode) else None
    return Task(
        label=label,
        kind=kind,
        fields=fields,
        input={**payload, **values(first(merged, "input", "args"))},
        rules=_rules(rules_node),
        on_unmatched=unmatched or "continue",
        sets=assigns(merged, envelope=False),
        spec=_spec(merged, spec),
        auth=optional(first(merged, "auth", "credential")),
        timeout_ms=_timeout(merged),
        desc=plain_text(first(merged, "desc", "description")),
        at=node,
        label_at=label_at,
        rules_at=rules_node,
    )


def _payload(fields: dict[str, Value]) -> dict[str, Value]:
    """Return the `payload` of a child as inputs, and drop `task`, which is its label.

    A payload that is one template stays a field: its keys are not known yet.
    """
    fields.pop("task", None)
    payload = fields["payload"].at if "payload" in fields else None
    if not isinstance(payload, MapNode):
        return {}
    del fields["payload"]
    return values(payload)


def _promoted(node: MapNode, spec: Node | None) -> MapNode:
    if not isinstance(spec, MapNode):
        return node
    extra = tuple(entry for entry in spec if _is_of_the_tool(entry) and entry.key.text not in node)
    return MapNode(node.start, node.end, (*node.entries, *extra), node.flow) if extra else node


def _is_of_the_tool(entry: Entry) -> bool:
    """Return whether a key of a task's `spec` is an input of its tool."""
    return entry.key.text not in SPEC_NAMES or (entry.key.text == "pool" and isinstance(entry.value, MapNode))


def _spec(task: MapNode, spec: Node | None) -> dict[str, Value]:
    found: dict[str, Value] = {}
    if isinstance(spec, MapNode):
        of_the_tool = {entry.key.text for entry in spec if _is_of_the_tool(entry)} | {"policy"}
        found = {name: one for name, one in settings(spec).items() if name not in of_the_tool}
    for name in _IN_SPEC:
        node = task.get(name)
        if node is not None:
            found.setdefault(name, value(node))
    output = task.get("output")
    if isinstance(output, MapNode):
        found["result"] = Value(_with_output(found.get("result"), output), output)
    return found


def _with_output(result: Value | None, output: MapNode) -> dict[str, object]:
    merged = dict(result.data) if result and isinstance(result.data, dict) else {}
    for key, node in output:
        data = canonical_data(node)
        if key.text in ("output_select", "select"):
            merged["select"] = [_select(item) for item in data] if isinstance(data, list) else data
        else:
            merged[key.text] = data
    return merged


def _select(item: object) -> object:
    if isinstance(item, str):
        return {"path": item, "as": item.rstrip("]").rsplit(".", 1)[-1].rsplit("[", 1)[-1]}
    return item


def _timeout(node: MapNode) -> Value | None:
    exact = node.get("timeout_ms")
    if exact is not None:
        return value(exact)
    seconds = first(node, "timeout", "timeout_seconds")
    if seconds is None:
        return None
    data = canonical_data(seconds)
    if isinstance(data, int | float) and not isinstance(data, bool):
        return Value(_whole(data * 1000), seconds)
    if isinstance(data, str) and data.strip().startswith("{{") and data.strip().endswith("}}"):
        return Value("{{ (" + data.strip()[2:-2].strip() + ") * 1000 }}", seconds)
    return Value(data, seconds)


def _whole(number: float) -> float | int:
    return int(number) if number % 1 == 0 else number  # infinity stays a float


def rule_parts(node: Node) -> tuple[Value | None, Node | None] | None:
    """Return condition and consequence of a rule; no condition for `else`."""
    if not isinstance(node, MapNode):
        return None
    if "else" in node:
        body = node.get("else")
        if isinstance(body, MapNode):
            return None, body.get("then") if "then" in body else body
        return None, node.get("then")
    when = node.get("when")
    return (value(when, envelope=True) if when is not None else Value(True)), node.get("then")


def _rules(node: Node | None) -> tuple[TaskRule, ...] | None:
    if not isinstance(node, ListNode):
        return None
    rules: list[TaskRule] = []
    for item in node:
        parts = rule_parts(item)
        if parts:
            rules.append(TaskRule(parts[0], _action(parts[1]), item))
    return tuple(rules)


def _action(node: Node | None) -> Action:
    if not isinstance(node, MapNode):
        return Action("continue", at=node)
    return Action(
        do=plain_text(node.get("do")) or "continue",
        attempts=optional(node.get("attempts"), envelope=True),
        delay=optional(node.get("delay"), envelope=True),
        backoff=optional(node.get("backoff"), envelope=True),
        max_delay=optional(node.get("max_delay"), envelope=True),
        jitter=optional(node.get("jitter"), envelope=True),
        to=text(node.get("to")),
        sets=assigns(node, envelope=True),
        at=node,
    )
