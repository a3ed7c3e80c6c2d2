"""Messages: what the control plane decides on.

Every message has an id, so that deciding it twice is idempotent. Workers send reports; the system sends itself messages
about timers, children and leases. Tested in tests/unit/engine/handlers/test_decide.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.model.work import WorkItem


class Message(msgspec.Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """Fields of every message."""

    message_id: str


class Start(Message, frozen=True):
    """Start the execution."""

    path: str
    playbook: str  # content hash
    payload: Mapping[str, Any] = {}
    parent: Mapping[str, Any] | None = None
    iter: Mapping[str, Any] | None = None  # the enclosing iteration of a child
    tags: tuple[str, ...] = ()
    pool: str = ""  # pool of all its work, over the playbook's; `local:<id>` for a run with its own driver
    priority: int = 0  # default priority of its work
    trace: str = ""  # the W3C traceparent it belongs to
    queued: str = ""  # which of its limits admits no further execution now: limit, above or rate


class Admit(Message, frozen=True):
    """Begin an execution that was queued by a limit; it waits on if none is free."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One event that a worker recorded."""

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
    """The end of one item of a loop."""

    index: int
    status: str  # ok, error, skipped
    result: Any = None
    error: Mapping[str, Any] | None = None
    writes: Mapping[str, Any] = {}
    key: str | None = None  # of a cursor's row
    last: Mapping[str, Any] | None = None  # of a failure: its context, for the dead letter


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row that a cursor claimed, with its key."""

    value: Any
    key: str | None = None


class Suspension(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a pipeline released its lease, and its snapshot."""

    cause: str  # delay, sleep, wait, playbook
    pipeline: Mapping[str, Any]
    until: int | None = None
    signal: str | None = None
    child: Mapping[str, Any] | None = None  # path, version, payload, return_step
    index: int | None = None  # the item of a loop that is suspended
    civil: bool = False  # `until` is a point of civil time, not the end of a duration


class Ending(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The end of a step-run."""

    status: str  # ok, error, cancelled
    result: Any = None
    error: Mapping[str, Any] | None = None
    scratch: Mapping[str, Any] = {}  # `step`, for the step's `set` and arcs
    last: Mapping[str, Any] | None = None  # of a failure: its context, for the dead letter


class Report(Message, frozen=True):
    """A worker's report on a lease; without an ending it is progress."""

    run_id: str
    epoch: int
    worker: str = ""
    records: tuple[Record, ...] = ()
    writes: Mapping[str, Any] = {}
    items: tuple[ItemEnd, ...] = ()
    rows: tuple[Row, ...] = ()  # rows of a claim, before it takes effect
    chunk: str | None = None
    suspension: Suspension | None = None
    ending: Ending | None = None
    pipeline: Mapping[str, Any] | None = None  # with progress: the snapshot from which another worker continues
    runtime: Mapping[str, Any] = {}  # in the first report of a lease: versions of what runs the work


class Signal(Message, frozen=True):
    """A signal from outside."""

    name: str
    data: Any = None


class PatchCtx(Message, frozen=True):
    """A write to `ctx` from outside."""

    writes: Mapping[str, Any]
    by: str = ""


class TimerDue(Message, frozen=True):
    """A timer is due."""

    timer_id: str


class ChildEnded(Message, frozen=True):
    """A child execution ended."""

    run_id: str
    child_id: str
    status: str
    result: Any = None
    error: Mapping[str, Any] | None = None
    compensated: bool | None = None  # whether it compensated everything; None if it did not have to


class Cancel(Message, frozen=True):
    """Cancel the execution, one step-run, or all runs of one step."""

    reason: str = ""
    run_id: str | None = None  # `step#1`, or `step` for all its runs that have not ended
    by: str = ""
    compensate: bool = False  # completed steps are compensated, as after a failure
    abandon: bool = False  # abandon a compensation in progress, which is not cancelled otherwise


class Complete(Message, frozen=True):
    """Complete a step without its work."""

    step: str
    result: Any = None
    by: str = ""
    reason: str = ""


class Pause(Message, frozen=True):
    """Pause: running steps finish, no new ones start.

    With a reason for a `review`, work and timers in flight are withheld too, until it is unpaused.
    """

    review: str = ""


class Unpause(Message, frozen=True):
    """Unpause."""


class LeaseLost(Message, frozen=True):
    """A lease expired; `exhausted` if no further delivery is allowed."""

    run_id: str
    epoch: int
    chunk: str | None = None
    exhausted: bool = False
    attempt: int = 0  # number of the delivery


class Collect(Message, frozen=True):
    """Store the results of a loop below an index; after the `last` ones the loop ends."""

    run_id: str
    upto: int
    last: bool = False


class Mend(Message, frozen=True):
    """Restore rows that were missing at `seq`; ignored if the log has grown."""

    seq: int
    work: tuple[WorkItem, ...] = ()
    timers: tuple[tuple[str, int], ...] = ()
    inbox: tuple[tuple[str, Start | ChildEnded | Cancel | LeaseLost | Collect], ...] = ()


class Again(msgspec.Struct, frozen=True, omit_defaults=True):
    """The work of a dead letter, as of its failure."""

    run_id: str
    step: str
    work: Mapping[str, Any]  # number, args, seen, role, item …
    index: int | None = None


class Redrive(Message, frozen=True):
    """Retry dead letters, with patched values if given."""

    letters: tuple[Again, ...]
    patch: Mapping[str, Any] = {}
    by: str = ""


class Discard(Message, frozen=True):
    """Discard dead letters without running their work; each is (step, run_id, index)."""

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
    | Unpause
    | LeaseLost
    | Collect
    | Mend
    | Redrive
    | Discard
    | Admit
)
