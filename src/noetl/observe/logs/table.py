"""Table of every log event, and the line that holds its fields.

Servers, workers and the reference page use it. Tested in tests/observe/test_logs.py, which sees each event logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from logging import DEBUG, INFO, WARNING
from typing import Any, Final, Literal, NamedTuple

import msgspec

Source = Literal["server", "worker"]

# Of every line, as far as they apply.
COMMON: Final[Mapping[str, str]] = {
    "ts": "When, in UTC.",
    "level": "DEBUG, INFO, WARNING or ERROR.",
    "logger": "The part of NoETL that logged it.",
    "msg": "Text for people; of an event, its name.",
    "execution_id": "Execution.",
    "workflow_ref": "Path of its playbook.",
    "step_id": "Step.",
    "call_id": "Step-run, such as `fetch#1`.",
    "loop_index": "Index of the loop item.",
    "loop_key": "Key of the loop item, with a cursor.",
    "tool_kind": "Kind of the task.",
    "sink_id": "What the task writes to, such as `postgres:results`.",
    "attempt": "Number of the attempt, from 1.",
    "max_attempts": "Maximum number of attempts.",
    "backoff_ms": "Delay before the next attempt, in milliseconds.",
    "duration_ms": "Duration in milliseconds.",
    "ok": "Whether it succeeded.",
    "error_class": "Class of the error.",
    "error": "Message of the error, without secrets.",
}


class LogEvent(NamedTuple):
    """A row of the table."""

    name: str
    source: Source
    fields: tuple[str, ...]  # besides the common ones
    about: str  # one sentence
    level: int = INFO


ALL: Final = (
    LogEvent("step_called", "server", ("reason", "edge_index"), "A token was sent to a step."),
    LogEvent("step_parked", "server", ("when_expr", "when_result"), "The gate of a step denied a token."),
    LogEvent("step_dispatch", "server", ("loop_plan",), "A step-run was scheduled."),
    LogEvent("task_enqueue", "server", ("message_id", "priority", "not_before"), "Work was queued."),
    LogEvent("result_integrate", "server", ("as", "collect"), "The result of a step became visible to others."),
    LogEvent("sink_dispatch", "server", ("sink_type",), "A step-run with a sink was scheduled."),
    LogEvent("step_done", "server", ("done", "counters"), "A step-run ended."),
    LogEvent("route_edge_selected", "server", ("from_step", "edge_index", "target_step", "condition"), "An arc was taken."),
    LogEvent("task_dlq", "server", ("message_id",), "Work became a dead letter.", WARNING),
    LogEvent("execution_canceled", "server", ("cause", "reason"), "An execution was cancelled."),
    LogEvent("lease_reclaimed", "server", ("message_id", "epoch"), "A lease expired.", WARNING),
    LogEvent("when_eval_error", "server", ("action", "edge_index"), "A condition could not be evaluated.", WARNING),
    LogEvent("task_claimed", "worker", ("message_id", "worker_id"), "A worker began work."),
    LogEvent("plugin_start", "worker", ("spec_signature",), "An attempt of a task started."),
    LogEvent("plugin_done", "worker", (), "An attempt of a task ended."),
    LogEvent("sink_start", "worker", ("sink_type",), "A write to a sink started."),
    LogEvent("sink_done", "worker", ("sink_type",), "A write to a sink ended."),
    LogEvent("sink_write", "worker", ("checksum", "size_bytes"), "What was written, as a checksum.", DEBUG),
    LogEvent("task_ack", "worker", ("message_id",), "The end of work was reported and is durable."),
    LogEvent("task_retry", "worker", ("message_id", "next_delay_ms"), "A task will be tried again."),
)  # fmt: skip
LOG_EVENTS: Final[Mapping[str, LogEvent]] = {one.name: one for one in ALL}


class Line(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False, rename={"as_": "as"}):
    """One log event: its own fields, then the common ones; None is left out."""

    ts: str = ""
    level: str = ""
    logger: str = ""
    msg: str = ""
    event: str
    message_id: str | None = None
    worker_id: str | None = None
    reason: str | None = None
    from_step: str | None = None
    edge_index: int | None = None
    target_step: str | None = None
    condition: Any = None
    when_expr: str | None = None
    when_result: bool | None = None
    action: str | None = None
    loop_plan: Mapping[str, Any] | None = None
    priority: int | None = None
    not_before: str | None = None
    as_: str | None = None
    collect: Mapping[str, str] | None = None
    sink_type: str | None = None
    checksum: str | None = None
    size_bytes: int | None = None
    spec_signature: str | None = None
    next_delay_ms: float | None = None
    epoch: int | None = None
    cause: str | None = None
    done: bool | None = None
    counters: Mapping[str, Any] | None = None
    execution_id: str | None = None
    workflow_ref: str | None = None
    step_id: str | None = None
    call_id: str | None = None
    loop_index: int | None = None
    loop_key: str | None = None
    tool_kind: str | None = None
    sink_id: str | None = None
    attempt: int | None = None
    max_attempts: int | None = None
    backoff_ms: float | None = None
    duration_ms: float | None = None
    ok: bool | None = None
    error_class: str | None = None
    error: str | None = None

    def stamp(self, ts: str, level: str, logger: str) -> Line:
        """Set when and by whom it is logged; returns itself."""
        self.ts, self.level, self.logger, self.msg = ts, level, logger, self.event
        return self
