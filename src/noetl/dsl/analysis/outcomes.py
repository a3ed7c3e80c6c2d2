"""Fields of outcomes, statuses, error kinds and event names.

`Kind` describes what a tool kind adds. Tested with the rules in tests/unit/dsl/rules/test_templates.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from noetl.dsl.grammar.kinds import Kind, Kinds
from noetl.dsl.tree.playbook import Step, Task
from noetl.model.events import names_of

ENVELOPE: Final[dict[str, str]] = {
    "status": "`ok` or `error`.",
    "result": "Result of the tool.",
    "data": "Alias of `result`.",
    "error": "The error: kind, code, message and whether a retry makes sense.",
    "meta": "Attempt, duration and start time of the call.",
    "ref": "Reference of a stored result.",
}
STATUSES: Final = ("ok", "error")
ERROR_FIELDS: Final[dict[str, str]] = {
    "kind": "Type of the error, such as `timeout`.",
    "class": "`RetryableError`, `FatalError`, `SinkError`, `CancelError` or `TimeoutError`.",
    "code": "Exact code, such as `HTTP_429` or `PG_40P01`.",
    "message": "Description of the error.",
    "retryable": "Whether a retry makes sense.",
    "retry_after": "Seconds to wait before a retry, as requested by the remote side.",
    "details": "Further information: of an HTTP request method, URL, status and the first lines of the body; else the code's.",
    "where": "Line of code that failed: `line`, `source`, `file` of a script, and the last `frames`.",
}
ERROR_KINDS: Final = (
    "connection", "timeout", "rate_limit", "auth", "not_found", "client_error", "server_error", "schema", "parse",
    "template", "python", "db_connection", "db_constraint", "db_deadlock", "db_timeout", "cancelled", "reference",
    "unknown",
)  # fmt: skip
META_FIELDS: Final[dict[str, str]] = {
    "attempt": "Number of the attempt, from 1.",
    "duration_ms": "Duration in milliseconds.",
    "started_at": "Start time.",
}
HELPERS: Final[dict[str, tuple[str, ...]]] = {
    "http": ("status", "headers"),
    "pg": ("code", "sqlstate"),
    "py": ("exception_type", "traceback"),
}
_BOUNDARIES: Final = ("step.done", "step.failed", "loop.done")
ROUTING_EVENTS: Final[dict[str, str]] = {
    "step.done": "The step succeeded.",
    "step.failed": "The step failed.",
    "loop.done": "The loop of the step ended.",
    **{older: f"Older name of `{name}`." for name in _BOUNDARIES for older in names_of(name)[1:]},
}
GATE_EVENTS: Final[dict[str, str]] = {**ROUTING_EVENTS, "signal.received": "The execution received a signal."}
STORED_FIELDS: Final = frozenset({"_ref", "_store"})
LOOP_RESULT: Final = frozenset({"results", "stats"})
STATS: Final = ("total", "succeeded", "failed", "skipped")


def kind_of(task: Task, kinds: Kinds, workbook: dict[str, Task]) -> Kind | None:
    """Return the kind of a task, or of the task that a workbook call runs."""
    if task.kind != "workbook":
        return kinds.get(task.kind)
    named = task.fields.get("task")
    called = workbook.get(str(named.data) if named else task.label)
    return kinds.get(called.kind) if called and called.kind != "workbook" else None


def result_fields(kind: Kind | None) -> frozenset[str] | None:
    """Return every key of a kind's result; None where any key may exist.

    A key that is missing in a result is looked up in its `data`, so a result with a free-form body may have any key.
    """
    if kind is None or kind.result is None or "data" in kind.result:
        return None
    return frozenset(kind.result) | STORED_FIELDS


def fields_beside_body(tasks: Iterable[Task], kinds: Kinds, workbook: dict[str, Task]) -> frozenset[str]:
    """Return the keys that results with a `body` have beside it; empty without one.

    Any other key may exist in the body, so only a typing mistake in one of these is certain.
    """
    results = (kind.result or {} for task in tasks if (kind := kind_of(task, kinds, workbook)))
    return frozenset(name for result in results if "body" in result for name in result)


def has_field(fields: frozenset[str], name: str) -> bool:
    """Return whether a name is among fields; `command_<i>` matches `command_0`."""
    return name in fields or f"{name.rstrip('0123456789')}<i>" in fields


def selected(task: Task) -> Iterator[str]:
    """Yield the names of the result parts that stay inline with the reference."""
    result = task.spec.get("result")
    parts = result.data.get("select") if result and isinstance(result.data, dict) else None
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and isinstance(part.get("as"), str):
            yield part["as"]


def task_fields(task: Task, kinds: Kinds, workbook: dict[str, Task]) -> frozenset[str] | None:
    """Return every key of a task's result; None where any key may exist."""
    fields = result_fields(kind_of(task, kinds, workbook))
    return None if fields is None else fields.union(selected(task))


def step_fields(step: Step, kinds: Kinds, workbook: dict[str, Task]) -> frozenset[str] | None:
    """Return every key of a step's result; None where any key may exist."""
    if step.loop:
        return LOOP_RESULT | STORED_FIELDS
    if not step.tasks:
        return None
    keys: set[str] = {"results"}
    for task in step.tasks:
        # A `break` may end the pipeline at any task, so any task may be the last.
        fields = task_fields(task, kinds, workbook)
        if fields is None:
            return None
        keys.add(task.label)
        keys |= fields
    return frozenset(keys)
