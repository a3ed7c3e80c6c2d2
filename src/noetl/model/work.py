"""Work: what a worker is handed, and how it is told apart from every other piece.

The queue is derived from events (`engine.work.work_for`), so it can always be built again. Tested in
tests/conformance/test_work_queue.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Chunk(msgspec.Struct, frozen=True, omit_defaults=True):
    """A range of a loop's items: `items[i]` has index `start + i`; up to `width` of them run at once.

    Of a list that was stored, `source` names the parts that hold the `count` items; they are not here.
    """

    chunk_id: str
    start: int
    items: tuple[Any, ...]
    total: int | None  # not known of a cursor
    width: int = 1
    ended: tuple[int, ...] = ()  # indexes in this range that ended on an earlier delivery: not to be run again
    keys: tuple[str | None, ...] = ()  # of a cursor's rows
    claim: bool = False  # nothing is to be run: rows are to be claimed
    count: int = 0
    source: Mapping[str, Any] | None = None

    @property
    def size(self) -> int:
        """How many items the range has."""
        return len(self.items) if self.source is None else self.count


class WorkItem(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A step-run, or a chunk of one, that waits for a worker."""

    work_id: str  # `<execution>:<run>` or `<execution>:<run>:<chunk>`; the key in the queue
    execution_id: str
    run_id: str
    step: str
    number: int  # which run of the step this is, from 1
    playbook: str  # content hash of the canonical tree
    scopes: Mapping[str, Any]  # the slice: workload, ctx, args, steps, statuses, iter, execution_id, job
    chunk: Chunk | None = None
    # Where to go on: `pipeline` is its own snapshot; after a suspension `wake` says what came:
    # {by: timer}, {by: signal, name, data}, {by: child, child_id, status, result, error}.
    resume: Mapping[str, Any] | None = None
    role: str = "step"  # step, final, compensation
    pool: str = ""
    priority: int = 0
    available_at: int = 0  # milliseconds since the epoch
    deadline: int | None = None
    requires: tuple[str, ...] = ()  # tags that a worker must have to be handed this
    patch: Mapping[str, Any] | None = None  # of a replay: {task, values}, over what the playbook says


class Lease(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A piece of work in one worker's hands; a report with another epoch is late."""

    work: WorkItem
    epoch: int
    attempt: int
    until: int
    worker: str = ""
