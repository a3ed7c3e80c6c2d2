"""Types of `tool`, `next` and rules; the node decides which form applies."""

from __future__ import annotations

from noetl.dsl.grammar.types import Flag, LevelOf, ListOf, MapOf, OneOf, Text, Type
from noetl.dsl.reading.nodes import ListNode, MapNode, Node

_TASK = LevelOf("task")
_NAMED = LevelOf("workbook_task")
_LABELLED: Type = MapOf(_TASK)
TRIGGER_LEVELS = {
    "schedule": "trigger",
    "webhook": "trigger_webhook",
    "ended": "trigger_ended",
    "subscription": "trigger_subscription",
}


def is_labelled(node: Node) -> bool:
    """Return whether a task is written as `label: {kind: …}`."""
    if not isinstance(node, MapNode) or len(node.entries) != 1 or "kind" in node:
        return False
    return isinstance(node.entries[0].value, MapNode)


def _pick_task(node: Node) -> Type | None:
    return _LABELLED if is_labelled(node) else _TASK


def task_item() -> Type:
    """One task of a pipeline: labelled by its key, by `name`, or unlabelled."""
    return OneOf((_TASK, _LABELLED), _pick_task)


def _pick_tool(node: Node) -> Type | None:
    return _LABELLED if is_labelled(node) else None


def tool_form() -> Type:
    """A pipeline: a single task or a list of tasks."""
    return OneOf((_TASK, _LABELLED, ListOf(task_item(), least=1)), _pick_tool)


def _pick_workbook_item(node: Node) -> Type | None:
    return MapOf(_NAMED) if isinstance(node, MapNode) and "tool" not in node and is_labelled(node) else None


def workbook_form() -> Type:
    """Named tasks: a map from name to task, or a list of tasks with names."""
    return OneOf((ListOf(OneOf((_NAMED, MapOf(_NAMED)), _pick_workbook_item)), MapOf(_NAMED)))


def _pick_next(node: Node) -> Type | None:
    if isinstance(node, ListNode):
        return ListOf(OneOf((LevelOf("arc"), Text())))
    return LevelOf("next") if isinstance(node, MapNode) else Text()


def next_form() -> Type:
    """A router: the full form, one step name, a list of names, or a list of arcs."""
    return OneOf((LevelOf("next"), Text(), ListOf(OneOf((LevelOf("arc"), Text())))), _pick_next)


def trigger_kind(node: MapNode) -> str | None:
    """Return the key of a trigger that holds its name, if it has one."""
    return next((kind for kind in TRIGGER_LEVELS if kind in node), None)


def _pick_trigger(node: Node) -> Type | None:
    kind = trigger_kind(node) if isinstance(node, MapNode) else None
    return LevelOf(TRIGGER_LEVELS[kind or "schedule"])


def trigger_item() -> Type:
    """One trigger: its kind is the key that holds its name."""
    return OneOf(tuple(map(LevelOf, TRIGGER_LEVELS.values())), _pick_trigger)


def else_form(then_level: str, else_level: str, fields: tuple[str, ...]) -> Type:
    """The last rule: `else: {then: {…}}`, `else: {…}`, or `else:` next to `then`."""

    def pick(node: Node) -> Type | None:
        if isinstance(node, MapNode):
            is_then = "then" not in node and any(name in node for name in fields)
            return LevelOf(then_level) if is_then else LevelOf(else_level)
        return None

    return OneOf((LevelOf(else_level), LevelOf(then_level), Flag()), pick)
