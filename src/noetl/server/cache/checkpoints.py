"""Cache of earlier states, as snapshots: a state at any event starts from one.

A fold from event 1 takes 1.5 s at event 50,000; from the nearest checkpoint at most some thousand events are folded. Bounded
by bytes, least recently used first. Tested in tests/unit/server/cache/test_checkpoints.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import Final

from noetl.engine.state.execution import Execution, dump, load
from noetl.ports.replay import Readable, Replay

EVERY: Final = 2_000  # events between two checkpoints
_BYTES_PER_EVENT: Final = 200  # a checkpoint is worth the events whose bytes are about its own
_MOST_BYTES: Final = 32 << 20


class Checkpoints:
    """Snapshots of states by execution and event."""

    def __init__(self, log: Readable, every: int = EVERY, most_bytes: int = _MOST_BYTES) -> None:
        self._log = log
        self._every = every
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._seqs: dict[str, list[int]] = {}  # of an execution, in order

    async def replay(self, execution_id: str, seq: int) -> Replay:
        """Return a replay that stands at an event. Raises InvalidInput if there is none."""
        state = self._nearest(execution_id, seq)
        replay = Replay(self._log, execution_id, state=state)
        due = (replay.state.seq // self._every + 1) * self._every
        while due < seq:
            size = self._keep(await replay.go(due))
            due += max(1, size // _BYTES_PER_EVENT // self._every) * self._every
        await replay.go(seq)
        return replay

    def _nearest(self, execution_id: str, seq: int) -> Execution | None:
        seqs = self._seqs.get(execution_id, [])
        place = bisect_right(seqs, seq)
        if not place:
            return None
        key = (execution_id, seqs[place - 1])
        self._kept.move_to_end(key)
        return load(self._kept[key])

    def _keep(self, state: Execution) -> int:
        """Keep a snapshot; return its size."""
        key = (state.execution_id, state.seq)
        if key in self._kept:
            return len(self._kept[key])
        try:
            data = dump(state)
        except (OverflowError, TypeError):  # a value that snapshots cannot hold
            return 0
        self._kept[key] = data
        seqs = self._seqs.setdefault(state.execution_id, [])
        seqs.insert(bisect_right(seqs, state.seq), state.seq)
        self._bytes += len(data)
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._kept)))
        return len(data)

    def _drop(self, key: tuple[str, int]) -> None:
        self._bytes -= len(self._kept.pop(key))
        self._seqs[key[0]].remove(key[1])
        if not self._seqs[key[0]]:
            del self._seqs[key[0]]

    def forget(self, execution_id: str) -> None:
        """Drop an execution that was removed."""
        for seq in list(self._seqs.get(execution_id, ())):
            self._drop((execution_id, seq))
