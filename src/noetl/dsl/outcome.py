"""The words that outcomes and events are made of: fields, states, kinds of error and names of events.

What a particular tool kind adds stands in its `Kind`. Used by the checks, completion and hover. Tested with the rules in
tests/unit/dsl/rules/test_templates.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noetl.dsl.kinds import Kind, Kinds
from noetl.dsl.playbook import Step, Task

ENVELOPE: Final[dict[str, str]] = {
    "status": "`ok` or `error`.",
    "result": "What the tool gave.",
    "data": "Another name for `result`.",
    "error": "What went wrong: kind, code, message and whether another try makes sense.",
    "meta": "Attempt, duration, start and trace of the call.",
    "ref": "The reference of a stored result.",
}
STATUSES: Final = ("ok", "error")
ERROR_FIELDS: Final[dict[str, str]] = {
    "kind": "What sort of error it is, such as `timeout`.",
    "class": "`RetryableError`, `FatalError`, `SinkError`, `CancelError` or `TimeoutError`.",
    "code": "The exact code, such as `HTTP_429` or `PG_40P01`.",
    "message": "The error in words.",
    "retryable": "Whether another attempt makes sense.",
    "retry_after": "Seconds that the other side asked to wait.",
    "details": "Whatever else is known.",
}
ERROR_KINDS: Final = (
    "connection", "timeout", "rate_limit", "auth", "not_found", "client_error", "server_error", "schema", "parse",
    "template", "python", "db_connection", "db_constraint", "db_deadlock", "db_timeout", "cancelled", "reference",
    "unknown",
)  # fmt: skip
META_FIELDS: Final[dict[str, str]] = {
    "attempt": "The number of the attempt, from 1.",
    "duration_ms": "How long it took, in milliseconds.",
    "started_at": "When it began.",
    "trace_id": "The id of its trace.",
}
HELPERS: Final[dict[str, tuple[str, ...]]] = {
    "http": ("status", "headers"),
    "pg": ("code", "sqlstate"),
    "py": ("exception_type", "traceback"),
}
ROUTING_EVENTS: Final[dict[str, str]] = {
    "step.done": "The step ended well.",
    "step.failed": "The step failed.",
    "loop.done": "The loop of the step ended.",
    "call.done": "An older name of `step.done`.",
    "step.exit": "An older name of `step.done`.",
    "call.error": "An older name of `step.failed`.",
}
GATE_EVENTS: Final[dict[str, str]] = {**ROUTING_EVENTS, "signal.received": "A signal came for this execution."}
STORED_FIELDS: Final = frozenset({"_ref", "_store"})
LOOP_RESULT: Final = frozenset({"results", "stats"})
STATS: Final = ("total", "succeeded", "failed", "skipped")


def kind_of(task: Task, kinds: Kinds, workbook: dict[str, Task]) -> Kind | None:
    """Give the kind whose outcome a task has: a call of the workbook has that of the task it calls."""
    if task.kind != "workbook":
        return kinds.get(task.kind)
    named = task.fields.get("task")
    called = workbook.get(str(named.data) if named else task.label)
    return kinds.get(called.kind) if called and called.kind != "workbook" else None


def result_fields(kind: Kind | None) -> frozenset[str] | None:
    """Give every key that may be looked up in a kind's result; None where it may be any.

    A key that is missing in a result is looked for in its `data`, so a result with a body of free form has all keys.
    """
    if kind is None or kind.result is None or "data" in kind.result:
        return None
    return frozenset(kind.result) | STORED_FIELDS


def has_field(fields: frozenset[str], name: str) -> bool:
    """Tell whether a name is among fields; `command_<i>` stands for `command_0`, `command_1` and so on."""
    return name in fields or f"{name.rstrip('0123456789')}<i>" in fields


def selected(task: Task) -> Iterator[str]:
    """Give the names under which parts of the task's result are kept beside its reference."""
    result = task.spec.get("result")
    parts = result.data.get("select") if result and isinstance(result.data, dict) else None
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and isinstance(part.get("as"), str):
            yield part["as"]


def task_fields(task: Task, kinds: Kinds, workbook: dict[str, Task]) -> frozenset[str] | None:
    """Give every key that may be looked up in the result of a task; None where it may be any."""
    fields = result_fields(kind_of(task, kinds, workbook))
    return None if fields is None else fields.union(selected(task))


def step_fields(step: Step, kinds: Kinds, workbook: dict[str, Task]) -> frozenset[str] | None:
    """Give every key that may be looked up in the result of a step; None where it may be any."""
    if step.loop:
        return LOOP_RESULT | STORED_FIELDS
    if not step.tasks:
        return None
    found: set[str] = {"results"}
    for task in step.tasks:
        # A `break` may end the pipeline at any task, so the last one is any of them.
        fields = task_fields(task, kinds, workbook)
        if fields is None:
            return None
        found.add(task.label)
        found |= fields
    return frozenset(found)
