"""Events: the facts that every state is a fold of.

An event is frozen, named in the past tense, and says something that happened in one execution. Names, display names and
older names are one table, from which the reference page is made. Events, messages, work and commits hold plain data,
never each other in a circle, so the garbage collector need not look at them. Tested in tests/unit/engine/test_laws.py.
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
    """What the table says of an event."""

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
        EventType(
            "playbook.execution.requested", "execution", "Somebody asked for an execution.", ("execution_start",)
        ),
        EventType("playbook.request.evaluated", "execution", "The request was checked and its workload merged."),
        EventType("playbook.started", "execution", "The execution began."),
        EventType("workflow.started", "workflow", "The entry token was about to be created."),
        EventType("token.created", "token", "A router or the start sent a token to a step."),
        EventType("token.parked", "token", "A gate did not let a token in; it is tried again later."),
        EventType("token.absorbed", "token", "A token ended without a run: a spent branch, a final step, a finish."),
        EventType("policy.admit.evaluated", "step", "A gate decided on a token.", ()),
        EventType("step.scheduled", "step", "A step-run was created and its work put in the queue."),
        EventType("step.started", "step", "A worker began a step-run.", ("step.enter", "action_started")),
        EventType(
            "step.done",
            "step",
            "A step-run succeeded.",
            ("step.exit", "call.done", "step.finished", "action_completed"),
        ),
        EventType("step.failed", "step", "A step-run failed.", ("call.error", "action_error")),
        EventType("step.forced", "step", "Somebody took a step as done without its work."),
        EventType(
            "step.repaired", "step", "A failed step-run was replayed with success; what follows is not run again."
        ),
        EventType("dlq.replayed", "step", "The work of a dead letter was put in the queue once more."),
        EventType("dlq.returned", "step", "A replay failed; its dead letter waits again."),
        EventType("dlq.discarded", "step", "Somebody closed a dead letter without doing its work."),
        EventType("message.poisoned", "message", "A message could not be decided; it waits as a dead letter."),
        EventType("message.released", "message", "Somebody gave such a message to the server once more."),
        EventType("message.settled", "message", "Such a message was decided after all."),
        EventType("step.skipped", "step", "A step-run ended without doing its work."),
        EventType("step.suspended", "step", "A pipeline gave its lease back until something happens."),
        EventType("loop.started", "loop", "A loop's list was evaluated.", ("loop_started",)),
        EventType("loop.claim.scheduled", "loop", "A claim of rows was put in the queue."),
        EventType(
            "loop.claim.recorded", "loop", "The rows of a claim became items; only now may the claim take effect."
        ),
        EventType("loop.claim.done", "loop", "A claim took effect, or gave no row."),
        EventType("loop.iteration.scheduled", "loop", "A range of items was put in the queue."),
        EventType("loop.iteration.started", "loop", "A worker began a range of items."),
        EventType("loop.iteration.done", "loop", "An item succeeded.", ("loop.iteration.finished",)),
        EventType("loop.iteration.failed", "loop", "An item failed."),
        EventType("loop.item.repaired", "loop", "A failed item of a loop was replayed with success."),
        EventType("loop.done", "loop", "Every item of a loop has ended.", ("loop.finished", "loop_completed")),
        EventType("task.started", "task", "A task began.", ("tool.started",)),
        EventType("task.attempt.started", "task", "One attempt of a retried task began."),
        EventType("task.attempt.done", "task", "One attempt of a retried task succeeded."),
        EventType("task.attempt.failed", "task", "One attempt of a retried task failed.", ("retry.processed",)),
        EventType("task.done", "task", "A task succeeded.", ("tool.finished",)),
        EventType("task.failed", "task", "A task failed."),
        EventType("task.logged", "task", "A task wrote lines to its log."),
        EventType("policy.task.evaluated", "task", "A task policy decided what an outcome leads to."),
        EventType("next.evaluated", "step", "A router decided which arcs to take.", ("case.evaluated",)),
        EventType("ctx.patched", "ctx", "The execution's state changed."),
        EventType("result.stored", "result", "A large result was put into a store."),
        EventType("result.manifest.updated", "result", "A part was added to a result that comes in parts."),
        EventType("timer.set", "timer", "Something will happen at a time."),
        EventType("timer.fired", "timer", "That time came."),
        EventType("signal.received", "signal", "A signal came from outside."),
        EventType("report.late", "step", "A report came from a worker that had lost its lease; nothing else changed."),
        EventType("child.started", "child", "A child execution was started."),
        EventType("child.finished", "child", "A child execution ended."),
        EventType("playbook.paused", "execution", "Nothing new is scheduled until it is resumed."),
        EventType("playbook.resumed", "execution", "Scheduling goes on."),
        EventType(
            "execution.repaired",
            "execution",
            "Work, a timer or a message that follows from the log was missing beside it, and was put back.",
        ),
        EventType("execution.cancelled", "execution", "Somebody or a deadline cancelled the execution."),
        EventType("workflow.finished", "workflow", "No token is left and nothing is in flight."),
        EventType("playbook.finished", "execution", "The execution ended with its status.", ("execution_completed",)),
        EventType("playbook.processed", "execution", "Everything that follows an ending is done."),
        EventType("playbook.corrected", "execution", "Repairs turned a partial execution into a complete one."),
    )
}
CANONICAL: dict[str, str] = {older: kind.name for kind in EVENT_TYPES.values() for older in kind.older}
