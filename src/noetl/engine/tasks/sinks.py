"""Sinks: what a task writes to, the last part of its idempotency key.

Templates in its name are not rendered, so every attempt has the same key. Tested in tests/unit/engine/pipeline/test_names.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from noetl.dsl.tree.playbook import Task
from noetl.model.outcome import Outcome, TaskError

_TABLES: Final = frozenset({"postgres", "duckdb", "ducklake", "snowflake"})
_STORING: Final = _TABLES | {"transfer", "outbox", "artifact"}


def sink_id(task: Task) -> str | None:
    """Return the name of a task's sink, such as `postgres:results`, if it has one."""
    if task.kind not in _STORING:
        return None
    fields = task.fields
    if task.kind in _TABLES and "table" in fields:
        return _named(task.kind, fields["table"].data)
    if task.kind == "transfer" and "target" in fields:
        target = fields["target"].data
        if isinstance(target, Mapping):
            kind = target.get("kind") or target.get("type")
            return _named(str(kind or task.kind), target.get("table") or target.get("path"))
        return task.kind
    if task.kind == "outbox" and "topic" in fields:
        return _named("outbox", fields["topic"].data)
    if task.kind == "artifact" and "action" in fields and fields["action"].data == "put":
        return task.kind
    return None


def is_aside(task: Task) -> bool:
    """Return whether a task only writes: its result is neither `_prev` nor the step's."""
    sink = task.spec.get("sink")
    return sink is not None and sink.data is True


def kept_field(kind: str, fields: Mapping[str, Any]) -> str | None:
    """Return the field whose value NoETL itself keeps for others to read, if any.

    Files, tables and other systems belong to the user; the outbox and stored artifacts do not.
    """
    if kind == "outbox":
        return "payload"
    if kind != "artifact" or fields.get("action") != "put":
        return None
    ref = fields.get("ref") or fields.get("uri")
    return None if isinstance(ref, str) and ref.startswith("file://") else "data"


def classed(task: Task, outcome: Outcome, error: TaskError) -> Outcome:
    """Return an error outcome with the class SinkError if a write failed."""
    if error.class_ or error.kind in ("timeout", "db_timeout", "cancelled") or sink_id(task) is None:
        return outcome
    return replace(outcome, error=replace(error, class_="SinkError"))


def _named(kind: str, place: Any) -> str:
    return f"{kind}:{place}" if isinstance(place, str) and "{" not in place else kind
