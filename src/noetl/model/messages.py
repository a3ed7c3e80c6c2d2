"""Messages: what the control plane is asked to decide on.

Every message has an id, so that deciding it twice is harmless. Reports come from workers; timers, children and leases are
messages that the system sends itself. Tested in tests/unit/engine/test_decide.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.model.work import WorkItem


class Message(msgspec.Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """What every message has."""

    message_id: str


class Start(Message, frozen=True):
    """Start this execution."""

    path: str
    playbook: str  # content hash
    payload: Mapping[str, Any] = {}
    parent: Mapping[str, Any] | None = None
    iter: Mapping[str, Any] | None = None  # the enclosing iteration, for a child
    tags: tuple[str, ...] = ()
    pool: str = ""  # where all of its work goes, whatever the playbook says: `local:<id>` for a run with its own driver
    priority: int = 0  # of all its work that names none itself
    trace: str = ""  # a W3C traceparent that it belongs to


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One event that a worker saw: a task began, ended, was retried, a policy decided."""

    event_type: str
    at: int
    task: str = ""
    task_run_id: str | None = None
    iteration: int | None = None
    attempt: int | None = None
    status: str | None = None
    duration_ms: float | None = None
    payload: Mapping[str, Any] = {}


class ItemEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one item of a loop ended."""

    index: int
    status: str  # ok, error, skipped
    result: Any = None
    error: Mapping[str, Any] | None = None
    writes: Mapping[str, Any] = {}
    key: str | None = None  # of a cursor's row
    last: Mapping[str, Any] | None = None  # of a failed one: what it was doing, for its dead letter


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row that a cursor claimed, and what tells it from others."""

    value: Any
    key: str | None = None


class Suspension(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a pipeline gave its lease back, and where it goes on."""

    cause: str  # delay, sleep, wait, playbook
    pipeline: Mapping[str, Any]
    until: int | None = None
    signal: str | None = None
    child: Mapping[str, Any] | None = None  # path, version, payload, return_step
    index: int | None = None  # the item of a loop that suspends, alone


class Ending(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How a step-run ended."""

    status: str  # ok, error, cancelled
    result: Any = None
    error: Mapping[str, Any] | None = None
    scratch: Mapping[str, Any] = {}  # `step`, for the step's own `set` and arcs
    last: Mapping[str, Any] | None = None  # of a failed one: what it was doing, for its dead letter


class Report(Message, frozen=True):
    """What a worker did on a lease; without an ending it is progress."""

    run_id: str
    epoch: int
    worker: str = ""
    records: tuple[Record, ...] = ()
    writes: Mapping[str, Any] = {}
    items: tuple[ItemEnd, ...] = ()
    rows: tuple[Row, ...] = ()  # that a claim gave, before it takes effect
    chunk: str | None = None
    suspension: Suspension | None = None
    ending: Ending | None = None
    pipeline: Mapping[str, Any] | None = None  # with progress: where a new owner goes on


class Signal(Message, frozen=True):
    """A signal from outside."""

    name: str
    data: Any = None


class PatchCtx(Message, frozen=True):
    """A change of the execution's state from outside."""

    writes: Mapping[str, Any]
    by: str = ""


class TimerDue(Message, frozen=True):
    """A timer's time has come."""

    timer_id: str


class ChildEnded(Message, frozen=True):
    """A child execution ended."""

    run_id: str
    child_id: str
    status: str
    result: Any = None
    error: Mapping[str, Any] | None = None
    compensated: bool | None = None  # whether it has undone all that it did; None where it was not to


class Cancel(Message, frozen=True):
    """End the execution, or one step-run of it, or all runs of one step."""

    reason: str = ""
    run_id: str | None = None  # `step#1`, or `step` for every run of it that has not ended
    by: str = ""
    compensate: bool = False  # what was done is undone, as after a failure
    abandon: bool = False  # also what is being undone now is given up; without it that goes on


class Complete(Message, frozen=True):
    """Take a step as done without its work."""

    step: str
    result: Any = None
    by: str = ""


class Pause(Message, frozen=True):
    """Schedule nothing new."""


class Resume(Message, frozen=True):
    """Schedule again."""


class LeaseLost(Message, frozen=True):
    """A lease ran out; `exhausted` when no further delivery is allowed."""

    run_id: str
    epoch: int
    chunk: str | None = None
    exhausted: bool = False
    attempt: int = 0  # which delivery of the work it was


class Collect(Message, frozen=True):
    """The results of a loop below an index are to be put away; after the `last` ones the loop ends."""

    run_id: str
    upto: int
    last: bool = False


class Mend(Message, frozen=True):
    """Put back what was found missing beside the log when it ended at `seq`; where it has gone on, nothing is done."""

    seq: int
    work: tuple[WorkItem, ...] = ()
    timers: tuple[tuple[str, int], ...] = ()
    inbox: tuple[tuple[str, Start | ChildEnded | Cancel | LeaseLost | Collect], ...] = ()


class Again(msgspec.Struct, frozen=True, omit_defaults=True):
    """The work of a dead letter, as it was when it failed."""

    run_id: str
    step: str
    work: Mapping[str, Any]  # number, args, seen, role, item …
    index: int | None = None


class Replay(Message, frozen=True):
    """Do the work of dead letters once more, perhaps with other values than the playbook has."""

    letters: tuple[Again, ...]
    patch: Mapping[str, Any] = {}
    by: str = ""


class Discard(Message, frozen=True):
    """Close dead letters without doing their work; each is (step, run_id, index)."""

    letters: tuple[tuple[str, str, int | None], ...]
    reason: str
    by: str = ""


AnyMessage = (
    Start
    | Report
    | Signal
    | PatchCtx
    | TimerDue
    | ChildEnded
    | Cancel
    | Complete
    | Pause
    | Resume
    | LeaseLost
    | Collect
    | Mend
    | Replay
    | Discard
)
