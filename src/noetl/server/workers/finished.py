"""What a worker finished lately, from the newest events of the log.

The log has no index by worker, and none is written for this: a commit costs what it did. The newest events are looked at,
however long the log is. Tested in tests/server/api/test_worker.py.
"""

from __future__ import annotations

from typing import Final

import msgspec

from noetl.ports import EventLog

LOOKED: Final = 4_000  # events, of all writers together
_STARTED: Final = "step.started"
_ENDS: Final = {"step.done": "done", "step.failed": "failed"}


class Finished(msgspec.Struct, frozen=True):
    """A step-run that a worker ended."""

    execution_id: str
    run: str
    state: str
    started_at: int
    ended_at: int


async def finished_by(store: EventLog, worker: str) -> list[Finished]:
    """Return the step-runs that a worker ended lately, newest first.

    One whose start is older than the events that are looked at is not known to be the worker's.
    """
    last = await store.writers()
    share = max(1, LOOKED // max(1, len(last)))
    after = {writer: max(0, seq - share) for writer, seq in last.items()}
    found = await store.feed(after, share, (_STARTED, *_ENDS))
    begun: dict[tuple[str, str], tuple[str, int]] = {}
    ended: list[Finished] = []
    for event in sorted((one.event for one in found), key=lambda event: (event.execution_id, event.seq)):
        key = (event.execution_id, str(event.step_run_id))
        if event.event_type == _STARTED:
            begun[key] = (str(event.payload.get("worker", "")), event.timestamp)
        elif event.event_type in _ENDS and key in begun:
            by, since = begun.pop(key)
            if by == worker:
                ended.append(Finished(*key, _ENDS[event.event_type], since, event.timestamp))
    return sorted(ended, key=lambda one: one.ended_at, reverse=True)
