"""Events: the facts that every state is a fold of.

An event is frozen, named in the past tense, and records something that happened in one execution. The table of names,
display names and older names generates the reference page. Events, messages, work and commits hold plain data without
reference cycles, so the garbage collector does not track them. Tested in tests/unit/engine/test_laws.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

SCHEMA_VERSION = 1
EntityType = Literal[
    "execution", "workflow", "token", "step", "loop", "task", "ctx", "result", "timer", "signal", "child", "message"
]


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One fact of one execution; `seq` orders them without gaps."""

    event_id: str
    execution_id: str
    seq: int
    event_type: str
    timestamp: int  # milliseconds since the epoch
    source: str = "server"
    entity_type: str = "execution"
    entity_id: str = ""
    parent_id: str | None = None
    step_run_id: str | None = None
    task_run_id: str | None = None
    iteration: int | None = None
    attempt: int | None = None
    status: str | None = None
    duration_ms: float | None = None
    payload: Mapping[str, Any] = {}
    version: int = SCHEMA_VERSION


class EventType(NamedTuple):
    """A row of the table of events."""

    name: str
    entity: EntityType
    summary: str
    older: tuple[str, ...] = ()

    @property
    def display(self) -> str:
        return "".join(word.capitalize() for word in self.name.replace(".", "_").split("_"))


EVENT_TYPES: dict[str, EventType] = {
    kind.name: kind
    for kind in (
        EventType("playbook.execution.requested", "execution", "An execution was requested.", ("execution_start",)),
        EventType("playbook.request.evaluated", "execution", "The request was validated and its workload merged."),
        EventType("playbook.started", "execution", "The execution started."),
        EventType("workflow.started", "workflow", "The workflow started; its entry token follows."),
        EventType("token.created", "token", "A router or the start sent a token to a step."),
        EventType("token.parked", "token", "A gate denied a token; it is evaluated again later."),
        EventType(
            "token.absorbed",
            "token",
            "A token ended without a run: a branch that lost, the final step, the end of the execution.",
        ),
        EventType("policy.admit.evaluated", "step", "A gate decided on a token.", ()),
        EventType("step.scheduled", "step", "A step-run was created and its work queued.", ("command.issued",)),
        EventType(
            "step.skipped", "step", "The gate skipped the step; a `step.done` with the status `skipped` follows."
        ),
        EventType(
            "step.started", "step", "A worker started a step-run.", ("step.enter", "action_started", "command.claimed")
        ),
        EventType(
            "step.done",
            "step",
            "A step-run succeeded.",
            ("step.exit", "call.done", "step.finished", "action_completed", "result"),
        ),
        EventType("step.failed", "step", "A step-run failed.", ("call.error", "action_error")),
        EventType("step.forced", "step", "A step was completed by hand, without its work."),
        EventType("step.repaired", "step", "The retry of a failed step-run succeeded; later steps are not run again."),
        EventType("dlq.replayed", "step", "The work of a dead letter was queued again."),
        EventType("dlq.returned", "step", "The retry of a dead letter failed; the letter is pending again."),
        EventType("dlq.discarded", "step", "A dead letter was discarded without running its work."),
        EventType("message.poisoned", "message", "A message could not be decided and became a dead letter."),
        EventType("message.released", "message", "A poison message was sent again."),
        EventType("message.settled", "message", "A poison message was decided."),
        EventType("step.suspended", "step", "A pipeline released its lease until something happens."),
        EventType("step.woken", "step", "A wait was over and its pipeline had nothing left for a worker: it ends now."),
        EventType("loop.started", "loop", "A loop's list was evaluated.", ("loop_started",)),
        EventType("loop.claim.scheduled", "loop", "A claim of rows was queued."),
        EventType("loop.claim.recorded", "loop", "The rows of a claim became items; the claim may take effect now."),
        EventType("loop.claim.done", "loop", "A claim took effect, or returned no row."),
        EventType("loop.iteration.scheduled", "loop", "A range of items was queued."),
        EventType("loop.iteration.started", "loop", "A worker started a range of items."),
        EventType("loop.iteration.done", "loop", "An item succeeded.", ("loop.iteration.finished",)),
        EventType("loop.iteration.failed", "loop", "An item failed."),
        EventType("loop.item.repaired", "loop", "The retry of a failed item succeeded."),
        EventType("loop.done", "loop", "Every item of a loop ended.", ("loop.finished", "loop_completed")),
        EventType("task.started", "task", "A task started.", ("tool.started", "sink.started")),
        EventType("task.attempt.started", "task", "An attempt of a retried task started.", ("retry.started",)),
        EventType("task.attempt.done", "task", "An attempt of a retried task succeeded."),
        EventType("task.attempt.failed", "task", "An attempt of a retried task failed.", ("retry.processed",)),
        EventType("task.done", "task", "A task succeeded.", ("tool.finished", "sink.processed")),
        EventType("task.failed", "task", "A task failed."),
        EventType("task.logged", "task", "A task wrote log lines."),
        EventType("policy.task.evaluated", "task", "A task policy decided what follows an outcome."),
        EventType("next.evaluated", "step", "A router decided which arcs to take.", ("case.started", "case.evaluated")),
        EventType("ctx.patched", "ctx", "`ctx` changed."),
        EventType("result.stored", "result", "A large result was stored."),
        EventType("result.manifest.updated", "result", "A part was added to a result in parts."),
        EventType("timer.set", "timer", "A timer was set."),
        EventType("timer.fired", "timer", "A timer fired."),
        EventType("signal.received", "signal", "A signal was received."),
        EventType("report.late", "step", "A worker that had lost its lease reported; nothing else changed."),
        EventType("child.started", "child", "A child execution was started."),
        EventType("child.finished", "child", "A child execution ended."),
        EventType(
            "execution.queued",
            "execution",
            "As many executions run as `concurrency` or `rate` of the playbook allows, so this one waits.",
        ),
        EventType("execution.admitted", "execution", "The limits of the playbook admitted the execution."),
        EventType(
            "playbook.paused",
            "execution",
            "The execution was paused: running steps finish, no new ones start. With a `review`, nothing runs at all.",
        ),
        EventType("playbook.resumed", "execution", "The execution was unpaused."),
        EventType(
            "execution.repaired",
            "execution",
            "Work, a timer or a message that follows from the log was missing, and was restored.",
        ),
        EventType("execution.cancelled", "execution", "The execution was cancelled, by request or by a deadline."),
        EventType("workflow.finished", "workflow", "No token is left and nothing is in flight."),
        EventType(
            "playbook.finished",
            "execution",
            "The execution ended with its status.",
            ("execution_completed", "execution_complete"),
        ),
        EventType("playbook.processed", "execution", "Everything that follows the end is done."),
        EventType("playbook.corrected", "execution", "Repairs turned a partial execution into a completed one."),
    )
}


def names_of(event_type: str) -> tuple[str, ...]:
    """Return the name of an event type and its older names; conditions may use each."""
    kind = EVENT_TYPES.get(event_type)
    return (event_type, *(kind.older if kind else ()))


CANONICAL: dict[str, str] = {older: kind.name for kind in EVENT_TYPES.values() for older in kind.older}
