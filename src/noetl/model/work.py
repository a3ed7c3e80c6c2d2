"""Work items and leases.

The queue is derived from events, so it can be rebuilt. Tested in tests/conformance/test_work_queue.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec


class Chunk(msgspec.Struct, frozen=True, omit_defaults=True):
    """Range of a loop's items: `items[i]` has index `start + i`.

    Up to `width` items run at once. For a stored list, `items` is empty and `source` names the parts that hold the
    `count` items.
    """

    chunk_id: str
    start: int
    items: tuple[Any, ...]
    total: int | None  # None: unknown, for a cursor
    width: int = 1
    ended: tuple[int, ...] = ()  # indexes that finished in an earlier delivery and must not run again
    keys: tuple[str | None, ...] = ()  # of rows of a cursor
    claim: bool = False  # claim rows of a cursor instead of running items
    count: int = 0
    source: Mapping[str, Any] | None = None
    frame: Mapping[str, Any] = {}  # of a claim: how many rows to claim at once, see noetl.engine.state.frames

    @property
    def size(self) -> int:
        """Number of items in the range."""
        return len(self.items) if self.source is None else self.count


class WorkItem(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Step-run, or a chunk of one, for a worker to execute."""

    work_id: str  # `<execution>:<run>` or `<execution>:<run>:<chunk>`; key in the queue
    execution_id: str
    run_id: str
    step: str
    number: int  # of the run of this step, from 1
    playbook: str  # content hash of the canonical tree
    scopes: Mapping[str, Any]  # the slice: workload, ctx, args, steps, statuses, iter, execution_id, job
    chunk: Chunk | None = None
    # Where to resume: `pipeline` is its own snapshot; after a suspension, `wake` is the cause:
    # {by: timer}, {by: signal, name, data}, {by: child, child_id, status, result, error}.
    resume: Mapping[str, Any] | None = None
    role: str = "step"  # step, final, compensation
    pool: str = ""
    priority: int = 0
    available_at: int = 0  # milliseconds since the epoch
    deadline: int | None = None
    requires: tuple[str, ...] = ()  # tags that a worker must have
    patch: Mapping[str, Any] | None = None  # of a replay: {task, values}, which override the playbook
    # Flows take turns: each execution that has begun is one, `path#id`, and the new executions of a playbook are another.
    flow: str = ""
    weight: int = 1  # share of the flow
    limits: tuple[str, ...] = ()  # of the server, that it counts for while it is leased: `pool gpu`, `kind http`
    trace_context: str = ""  # W3C traceparent of its span, if the execution is traced


WORK_LIMITS: Final = "work_limits"  # setting of a server: how much work of each limit is leased at once
PLAYBOOK_LIMITS: Final = "playbook_limits"  # setting of a server: how many executions run at once, by pattern of paths
NEW: Final = " (new)"  # ends the flow of executions that have not begun
SHARE: Final = 1_000_000  # distance of a flow's work items in the queue, divided by its weight


def kept_slots(capacity: int) -> int:
    """Return how many slots of a worker are kept for idle playbooks."""
    return capacity // 16


def asked_work(free: int, kept: int) -> tuple[int, bool]:
    """Return how much work to ask for, and whether only of idle playbooks."""
    return (free - kept, False) if free > kept else (max(free, 0), True)


def playbook_of(flow: str) -> str:
    """Return the path of the playbook that a flow belongs to."""
    return flow.removesuffix(NEW) if flow.endswith(NEW) else flow.rpartition("#")[0]


def distance(item: WorkItem) -> int:
    """Return how far behind its flow's last work item an item is queued."""
    return SHARE // max(1, item.weight)


class Lease(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Work item that one worker holds until a time.

    A report with another epoch is stale.
    """

    work: WorkItem
    epoch: int
    attempt: int
    until: int
    worker: str = ""


class Line(msgspec.Struct, frozen=True):
    """Where an execution stands: behind how much work, behind how many executions."""

    work: Mapping[str, int] = {}  # queued work id → work of its pool that goes before it
    group: str = ""  # of the limit that it waits for
    position: int = 0  # among the executions that wait for it, from 1; 0: it does not wait
    running: tuple[str, ...] = ()  # executions that hold the places
    limits: Mapping[str, tuple[str, ...]] = {}  # queued work id → limits of the server that it counts for
    held_by: str = ""  # which of its limits an execution waits for now: limit, above or rate; empty: not known
    turn_at: int = 0  # when its rate admits an execution, if it waits for that
    full: Mapping[str, int] = {}  # limits of the server that are reached → how much work they allow
