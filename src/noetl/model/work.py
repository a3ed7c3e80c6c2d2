"""Work items, chunks of loops, and leases.

The queue is derived from events (`engine.work.work_for`), so it can always be rebuilt. Tested in
tests/conformance/test_work_queue.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Chunk(msgspec.Struct, frozen=True, omit_defaults=True):
    """A range of a loop's items: `items[i]` has index `start + i`.

    Of a stored list, `items` is empty and `source` is the manifest of the parts that hold the `count` items.
    """

    chunk_id: str
    start: int
    items: tuple[Any, ...]
    total: int | None  # unknown for a cursor
    width: int = 1  # how many of them run at once
    ended: tuple[int, ...] = ()  # indexes that ended on an earlier delivery; not run again
    keys: tuple[str | None, ...] = ()  # of a cursor's rows
    claim: bool = False  # rows are claimed instead of run
    count: int = 0
    source: Mapping[str, Any] | None = None

    @property
    def size(self) -> int:
        """Number of items in the range."""
        return len(self.items) if self.source is None else self.count


class WorkItem(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A step-run, or a chunk of its loop, in the queue."""

    work_id: str  # `<execution>:<run>` or `<execution>:<run>:<chunk>`; the key in the queue
    execution_id: str
    run_id: str
    step: str
    number: int  # number of the run, from 1
    playbook: str  # content hash of the canonical tree
    scopes: Mapping[str, Any]  # the slice: workload, ctx, args, steps, statuses, iter, execution_id, job
    chunk: Chunk | None = None
    # Where to continue: `pipeline` is its snapshot; after a suspension `wake` is what woke it:
    # {by: timer}, {by: signal, name, data}, {by: child, child_id, status, result, error}.
    resume: Mapping[str, Any] | None = None
    role: str = "step"  # step, final, compensation
    pool: str = ""
    priority: int = 0
    available_at: int = 0  # milliseconds since the epoch
    deadline: int | None = None
    requires: tuple[str, ...] = ()  # tags that a worker needs
    patch: Mapping[str, Any] | None = None  # of a retried dead letter: {task, values} over the playbook's


class Lease(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A work item leased to a worker; a report with another epoch is late."""

    work: WorkItem
    epoch: int
    attempt: int
    until: int
    worker: str = ""
