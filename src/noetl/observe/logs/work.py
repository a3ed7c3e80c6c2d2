"""Log events of a worker: what becomes of the work of one lease.

Made once per lease, with the fields that all of its lines have; None where no level of them is on. Tested in
tests/observe/test_logs.py.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import msgspec

from noetl.dsl.tree.playbook import Playbook, Step
from noetl.engine.tasks.actions import RunTask
from noetl.model.messages import Record, Report
from noetl.model.outcome import Outcome, class_of
from noetl.model.work import Lease
from noetl.observe.logs.lines import WORKER_EVENTS, work_fields
from noetl.observe.logs.table import LOG_EVENTS, Line
from noetl.observe.task_facts import TaskFacts, find_task, task_facts

_LEVELS: Final = sorted({one.level for one in LOG_EVENTS.values() if one.source == "worker"}, reverse=True)
_WRITTEN: Final = (
    "values",
    "rows",
    "data",
    "payload",
    "content",
)  # fields with what a sink writes; else it is the input


def work_log(
    lease: Lease, playbook: Playbook, step: Step, worker: str, now: Callable[[], int], known: dict[str, TaskFacts]
) -> WorkLog | None:
    """Return the log of a lease's work; None if no level of its events is on.

    `known` caches what the step says of its tasks.
    """
    if not any(map(WORKER_EVENTS.is_on, _LEVELS)):
        return None
    return WorkLog(lease, playbook, step, worker, now, known)


class WorkLog:
    """Logs the events of one lease."""

    def __init__(
        self,
        lease: Lease,
        playbook: Playbook,
        step: Step,
        worker: str,
        now: Callable[[], int],
        known: dict[str, TaskFacts],
    ) -> None:
        self._lease = lease
        self._step = step
        self._workbook = playbook.workbook
        self._now = now
        self._began = now()
        self._known = known  # cache of the step
        self._bound = {"workflow_ref": playbook.path} | work_fields(lease.work)
        kind = step.tasks[0].kind if step.tasks else None
        told = {"message_id": lease.work.work_id, "tool_kind": kind, "attempt": lease.attempt, "worker_id": worker}
        self._log("task_claimed", **told)

    def _log(self, name: str, **fields: Any) -> None:
        if WORKER_EVENTS.is_on(LOG_EVENTS[name].level):
            WORKER_EVENTS.log((Line(event=name, **fields, **self._bound),))

    def _facts(self, task: RunTask) -> TaskFacts:
        known = self._known.get(task.label)
        if known is None:
            found = find_task(self._step.tasks, self._workbook, task.label)
            known = self._known[task.label] = TaskFacts(task.kind) if found is None else task_facts(found)
        return known

    def attempt_started(self, task: RunTask, index: int | None) -> None:
        """Log that an attempt starts."""
        facts = self._facts(task)
        told = {"tool_kind": task.kind, "attempt": task.attempt, "loop_index": index}
        self._log("plugin_start", **told, spec_signature=facts.signature)
        if facts.sink is not None:
            self._log("sink_start", sink_id=facts.sink, sink_type=task.kind, **told)

    def attempt_ended(self, task: RunTask, index: int | None, outcome: Outcome | None, seconds: float) -> None:
        """Log that an attempt ended; without an outcome it was cancelled."""
        facts, ok = self._facts(task), outcome is not None and outcome.error is None
        told: dict[str, Any] = {"tool_kind": task.kind, "attempt": task.attempt, "loop_index": index}
        told |= {"duration_ms": round(seconds * 1000, 1), "ok": ok}
        if outcome is None:
            told |= {"error_class": "CancelError"}
        elif outcome.error is not None:
            told |= {"error_class": class_of(msgspec.to_builtins(outcome.error)), "error": outcome.error.message}
        self._log("plugin_done", **told)
        if facts.sink is not None:
            self._log("sink_done", sink_id=facts.sink, sink_type=task.kind, **told)
            if ok and WORKER_EVENTS.is_on(LOG_EVENTS["sink_write"].level):
                self._log("sink_write", sink_id=facts.sink, loop_index=index, **_checksum(task))

    def reported(self, report: Report) -> None:
        """Log the retries of a report, and the end of the work if it has that."""
        for record in report.records:
            if record.event_type == "task.attempt.failed" and "delay_ms" in record.payload:
                self._retried(record)

    def _retried(self, record: Record) -> None:
        error, delay = record.payload.get("error") or {}, record.payload["delay_ms"]
        told = {"message_id": self._lease.work.work_id, "attempt": (record.attempt or 1) + 1, "next_delay_ms": delay}
        told |= {"backoff_ms": delay, "loop_index": record.iteration, "error_class": class_of(error)}
        self._log("task_retry", **told, error=error.get("message"))

    def acknowledged(self, report: Report) -> None:
        """Log that the end of the work is durable."""
        ended = [item.status for item in report.items] if report.ending is None else [report.ending.status]
        took = float(self._now() - self._began)
        told = {"message_id": self._lease.work.work_id, "duration_ms": took, "attempt": self._lease.attempt}
        self._log("task_ack", **told, ok="error" not in ended and "cancelled" not in ended)


def _checksum(task: RunTask) -> dict[str, Any]:
    """Return a checksum and the size of what a sink was given, never the data."""
    data = _encoded({name: task.fields[name] for name in _WRITTEN if name in task.fields} or task.input)
    return {"checksum": sha256(data).hexdigest()[:16], "size_bytes": len(data)}


def _encoded(data: Any) -> bytes:
    try:
        return msgspec.json.encode(data, enc_hook=repr, order="deterministic")
    except (TypeError, ValueError, RecursionError, OverflowError):
        return repr(data).encode()
