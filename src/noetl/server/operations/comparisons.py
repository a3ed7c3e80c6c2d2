"""Two executions side by side, for the API and for commands on a store.

Tested in tests/server/api/test_compare.py and tests/acceptance/executions/test_compare_cli.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from msgspec import convert, to_builtins

from noetl.engine.plan.plan import Plan
from noetl.engine.queries.history.compare import Decided, Split, compare, decided
from noetl.engine.queries.track import Track
from noetl.engine.queries.view import changed, shortened
from noetl.masking.readers import ReaderMask
from noetl.model.events import Event
from noetl.ports import Selection
from noetl.server.cache.catalog_lookup import Versions, text_of, version_at
from noetl.wire.requests import TRIAL
from noetl.wire.screens.compare import (
    ArcPairRow,
    Compared,
    ComparedHead,
    DecidedRow,
    PlaybookDiff,
    SplitRow,
    StepPairRow,
)
from noetl.wire.screens.moments import MomentChange

_MOST: Final = 500  # changes of a workload
_MOST_ROWS: Final = 2_000  # steps, arcs, and lines of a diff, each
Row = Mapping[str, Any]


class Store(Versions, Protocol):
    """Logs and versions of playbooks."""

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]: ...


@dataclass(frozen=True)
class Side:
    """One of two executions."""

    row: Row
    track: Track
    workload: Mapping[str, Any]


@dataclass(frozen=True)
class Comparer:
    """Compares executions of a store; `differ` compares two texts, None: too long."""

    store: Store
    mask: ReaderMask
    now: int
    differ: Callable[[bytes, bytes, tuple[str, str]], Awaitable[str | None]]

    async def compare(self, this: Side, other: Side) -> Compared:
        """Return what changed from the other execution to this one."""
        found = compare(this.track, other.track)
        changes = list(changed(dict(other.workload), dict(this.workload)))
        counts = {"workload": (len(changes), _MOST)}
        counts |= {"steps": (len(found.steps), _MOST_ROWS), "arcs": (len(found.arcs), _MOST_ROWS)}
        shown = self.mask.data(changes[:_MOST])
        return Compared(
            this=await self._head(this.row),
            other=await self._head(other.row),
            playbook=await self._playbook(other.row, this.row),
            workload=[MomentChange(**{name: shortened(value) for name, value in one.items()}) for one in shown],
            steps=[convert(one, StepPairRow, from_attributes=True) for one in found.steps[:_MOST_ROWS]],
            arcs=[convert(one, ArcPairRow, from_attributes=True) for one in found.arcs[:_MOST_ROWS]],
            split=None if found.split is None else await self._split(this, other, found.split),
            unaligned=found.unaligned,
            left_out={name: count - most for name, (count, most) in counts.items() if count > most},
        )

    async def _head(self, row: Row) -> ComparedHead:
        path, playbook, started = str(row.get("path", "")), str(row.get("playbook", "")), int(row.get("started_at", 0))
        ended = row.get("ended_at")
        return ComparedHead(
            execution_id=str(row["execution_id"]),
            path=path,
            playbook=playbook,
            version=await version_at(self.store, path, playbook, started),
            status=str(row["status"]),
            started_at=started,
            ended_at=ended,
            duration_ms=max(0, (self.now if ended is None else int(ended)) - started),
            last_seq=int(row["last_seq"]),
            error=row.get("error"),
        )

    async def _playbook(self, before: Row, after: Row) -> PlaybookDiff:
        hashes = [str(one.get("playbook", "")) for one in (before, after)]
        if hashes[0] == hashes[1]:
            return PlaybookDiff(differs=False, text=None, left_out=0)
        paths = [str(one.get("path", "")) for one in (before, after)]
        old, new = [await text_of(self.store, *one) for one in zip(hashes, paths, strict=True)]
        names = (f"{paths[0]} {hashes[0][:12]}", f"{paths[1]} {hashes[1][:12]}")
        text = await self.differ(old, new, names) if old and new else None
        lines = (text or "").splitlines(keepends=True)
        shown = None if text is None else "".join(lines[:_MOST_ROWS])
        return PlaybookDiff(differs=True, text=shown, left_out=max(0, len(lines) - _MOST_ROWS))

    async def _split(self, this: Side, other: Side, split: Split) -> SplitRow | None:
        here = await self._decided(str(this.row["execution_id"]), split.seq, this.track.plan)
        there = await self._decided(str(other.row["execution_id"]), split.other_seq, other.track.plan)
        if here is None or there is None:
            return None
        return SplitRow(step=split.step, number=split.number, arc=split.arc, this=here, other=there)

    async def _decided(self, execution_id: str, seq: int, plan: Plan | None) -> DecidedRow | None:
        """Return a decision with the values it read, masked before they are cut."""
        events = await self.store.read(execution_id, seq - 1, 1)
        if not events:  # the execution was removed meanwhile
            return None
        found: Decided = self.mask.data(decided(events[0], plan))
        made = to_builtins(found)
        for one in [*made["arcs"], *([made["gate"]] if made["gate"] else [])]:
            one["read"] = (
                None if one["read"] is None else {name: shortened(value) for name, value in one["read"].items()}
            )
        return convert(made, DecidedRow)


def last_good(row: Row, within: Any = None) -> Selection:
    """Return how to find the newest completed execution of its path before it."""
    path, before = str(row.get("path", "")), str(row["execution_id"])
    return Selection(status=("completed",), path=path, without=TRIAL, before=before, limit=1, within=within)
