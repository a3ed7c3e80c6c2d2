"""Steps of the first dialect: names, tools on the step, conditions that skip.

Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

import re
from typing import Any, Final

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.draft import (
    Fields,
    NoEquivalentError,
    Record,
    is_null,
    is_result_form,
    plain_name,
    value,
)
from noetl.dsl.dialects.lowering.loops import iterator_key, lower_iterator
from noetl.dsl.dialects.lowering.tasks import lower_call
from noetl.dsl.reading.nodes import MapNode, Node, Scalar

# Fields that belong to a step; every other one belonged to the tool of a typed step.
_OF_A_STEP: Final = frozenset({
    "step", "desc", "description", "spec", "loop", "next", "set", "set_ctx", "compensate", "when", "pass", "case", "vars",
    "sink", "save", "retry", "result", "tool", "name",
})  # fmt: skip
# Fields that only one kind with a `command` has.
_RUNNERS: Final = (
    ("container", frozenset({"image"})),
    ("shell", frozenset({"env", "cwd"})),
    ("snowflake", frozenset({"warehouse", "account", "role"})),
    ("ducklake", frozenset({"catalog", "data_path"})),
    ("duckdb", frozenset({"read_only", "extensions"})),
    ("postgres", frozenset({"pool"})),
)
_SQL: Final = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:select|insert|update|delete|create|drop|alter|with|truncate|merge|call|do|copy)\b",
    re.IGNORECASE | re.DOTALL,
)
_INPUTS: Final = frozenset({"input", "args"})
_TOOLS: Final = ("type", "tool", "action", "call", "code")
OLDER: Final = frozenset({"type", "action", "call", "code", "command", "pass", "with"})


def lower_name(step: Fields, record: Record) -> None:
    if "name" in step and "step" not in step:
        record.note(by.STEP_NAME, step.key("name"))
        step.rename("name", "step")


def is_named_tool(tool: Node | None) -> bool:
    """Return whether a step names its tool, as in `tool: http`."""
    return isinstance(tool, Scalar) and isinstance(tool.value, str)


def lower_typed(step: Fields, name: str, record: Record) -> None:
    """Move the tool of a step, and its fields, under `tool`."""
    if iterator_key(step):
        lower_iterator(step, name, record)
        return
    if "tool" in step and not is_named_tool(step.get("tool")):
        _lower_with(step, record)
        return
    chosen = next((field for field in _TOOLS if not is_null(step.get(field))), None)
    if chosen is None and "command" not in step:
        _lower_with(step, record)
        return
    chosen = chosen or "command"
    key = step.key(chosen)
    tool = Fields(MapNode(key.start, key.end, ()))
    _choose_kind(step, tool, chosen, key, record)
    for field in [field for field in step.entries if _is_of_the_tool(field, step)]:
        entry = step.pop(field)
        if field == "with" and "input" not in tool:
            record.note(by.WITH, entry.key)
            tool.put("input", entry.value, entry.key)
        elif field in tool or (field in _INPUTS and not _INPUTS.isdisjoint(tool.entries)):
            reason = f"`{field}` of the step is given a second time, by an older name of it."
            raise NoEquivalentError(entry.key, reason, "Keep one of the two.")
        else:
            tool.add(entry)
    _name_task(step, tool)
    step.put("tool", tool.built(), key)


def _is_of_the_tool(field: str, step: Fields) -> bool:
    """Return whether a field of a typed step belongs to its tool.

    `result` does where it is an input, and `tool` where something else named the kind, as for `mcp`.
    """
    if field == "result":
        return not is_result_form(step.get(field))
    return field == "tool" or field not in _OF_A_STEP


def _choose_kind(step: Fields, tool: Fields, chosen: str, key: Scalar, record: Record) -> None:
    if chosen == "call":
        tool.add(step.pop("call"))
        lower_call(tool, record)
        return
    record.note(by.TYPED_STEP, key)
    if chosen in ("code", "command"):
        tool.put("kind", value("python" if chosen == "code" else _runner(step), key), key)
        return
    _, kind = step.pop(chosen)
    if plain_name(kind) is None:
        raise NoEquivalentError(kind, f"`{chosen}` names no tool.", f"Write `{chosen}: http`, or another kind.")
    if chosen in ("type", "tool") and "action" in step and plain_name(kind) != "workbook":
        reason = f"`{chosen}` and `action` both name the work of the step."
        fix = f"Keep `{chosen}`. A task of the workbook is `{chosen}: workbook` with `action: <task>`."
        raise NoEquivalentError(step.key("action"), reason, fix)
    tool.put("kind", kind, key)
    if chosen in ("type", "tool") and plain_name(kind) == "workbook" and "call" in step:
        call = step.pop("call")
        tool.put("task", call.value, call.key)


def _runner(step: Fields) -> str:
    """Return the kind that runs a `command`, by the fields beside it."""
    key, command = step.entries["command"]
    for kind, fields in _RUNNERS:
        if not fields.isdisjoint(step.entries):
            return kind
    is_sql = isinstance(command, Scalar) and _SQL.match(command.text) is not None
    has_auth, has_file = "auth" in step or "credential" in step, "database" in step
    if is_sql and has_auth != has_file:
        return "postgres" if has_auth else "duckdb"
    reason = "The step has a `command` and no `type`, so nothing says what runs it."
    fix = "It begins as SQL does: add `type: postgres`, `type: duckdb`, or another kind with SQL."
    raise NoEquivalentError(key, reason, fix if is_sql else "Add `type: shell`, or the kind that runs it.")


def _name_task(step: Fields, tool: Fields) -> None:
    """Name the task of the workbook that a step calls."""
    if plain_name(tool.get("kind")) != "workbook" or "task" in tool:
        return
    if "action" in tool:
        tool.rename("action", "task")
    elif "name" in step and "step" in step:
        named = step.pop("name")
        tool.put("task", named.value, named.key)
    elif isinstance(own := step.get("step"), Scalar):
        tool.put("task", value(own.text, own), own)


def _lower_with(step: Fields, record: Record) -> None:
    if "with" in step and "input" not in step and "args" not in step:
        record.note(by.WITH, step.key("with"))
        step.rename("with", "input")


def lower_skip(step: Fields, record: Record) -> None:
    """Turn `when` and `pass` into a gate that skips."""
    rules: list[dict[str, Any]] = []
    at: Node = step.node
    if not is_null(step.get("pass")):
        key, passed = step.pop("pass")
        at = key
        record.note(by.SKIP, key)
        rules.append({"when": passed, "then": {"allow": "skip"}})
    if not is_null(step.get("when")):
        key, when = step.pop("when")
        at = key
        record.note(by.SKIP, key)
        rules += [{"when": when, "then": {"allow": True}}, {"else": {"then": {"allow": "skip"}}}]
    else:
        rules.append({"else": {"then": {"allow": True}}})
    put_gate(step, rules, at)


def put_gate(step: Fields, rules: list[dict[str, Any]], at: Node) -> None:
    """Set the admission gate of a step."""
    spec = step.below("spec", at)
    policy = spec.below("policy", at)
    if "admit" in policy:
        raise NoEquivalentError(
            at, "The step has a gate besides its condition.", "Write the condition as a rule of the gate."
        )
    policy.put("admit", value({"rules": rules}, at), at)
    spec.put("policy", policy.built(), at)
    step.put("spec", spec.built(), at)
