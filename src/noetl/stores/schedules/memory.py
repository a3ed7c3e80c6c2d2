"""Schedules in memory. Tested in tests/conformance/test_schedules.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from noetl.audit.chain import with_references
from noetl.ports.schedules import OPEN, Firing, Schedule
from noetl.ports.team import Audit
from noetl.stores.memory.tables import Tables

_replace = msgspec.structs.replace


class MemorySchedules:
    """Schedules and firings in the tables of a store."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows = tables.schedules
        self._fired = tables.firings

    async def add(self, schedule: Schedule, act: Audit = None) -> bool:
        if schedule.schedule_id in self._rows:
            return False
        self._rows[schedule.schedule_id] = _replace(schedule, revision=1)
        self._tables.note([with_references(act, "", "revision 1")])
        return True

    async def save(self, schedule: Schedule, firings: Sequence[Firing] = (), act: Audit = None) -> bool:
        known = self._rows.get(schedule.schedule_id)
        if known is None or known.revision != schedule.revision:
            return False
        self._rows[schedule.schedule_id] = _replace(schedule, revision=known.revision + 1)
        for firing in firings:
            self._fired.setdefault((firing.schedule_id, firing.at), firing)
        self._tables.note([with_references(act, f"revision {known.revision}", f"revision {known.revision + 1}")])
        return True

    async def remove(self, schedule_id: str, act: Audit = None) -> bool:
        known = self._rows.pop(schedule_id, None)
        if known is None:
            return False
        for key in [key for key in self._fired if key[0] == schedule_id]:
            del self._fired[key]
        self._tables.note([with_references(act, f"revision {known.revision}")])
        return True

    async def schedule(self, schedule_id: str) -> Schedule | None:
        return self._rows.get(schedule_id)

    async def schedules(
        self,
        *,
        path: str | None = None,
        owner: str | None = None,
        after: str | None = None,
        limit: int = 100,
        within: Sequence[str] | None = None,
    ) -> list[Schedule]:
        found = [
            one
            for name, one in sorted(self._rows.items())
            if path in (None, one.path)
            and owner in (None, one.owner)
            and (after is None or name > after)
            and (within is None or one.path.startswith(tuple(within)))
        ]
        return found[:limit]

    async def due(self, now: int, most: int) -> list[Schedule]:
        rows = [one for one in self._rows.values() if not one.paused]
        due = [(one.start_at, one.schedule_id, one) for one in rows if one.start_at is not None and one.start_at <= now]
        return [one for _, _, one in sorted(due, key=lambda row: row[:2])][:most]

    async def undecided(self, after: tuple[str, int], most: int) -> list[Firing]:
        rows = sorted(self._fired.items())
        return [one for key, one in rows if one.state in OPEN and key > after][:most]

    async def running(self, schedule_id: str) -> list[Firing]:
        rows = sorted(self._fired.items())
        return [one for key, one in rows if key[0] == schedule_id and one.state == "started"]

    async def decide(self, firing: Firing) -> bool:
        known = self._fired.get((firing.schedule_id, firing.at))
        if known is None or known.state not in OPEN:
            return False
        self._fired[firing.schedule_id, firing.at] = firing
        return True

    async def settle(self) -> int:
        done = [key for key, one in self._fired.items() if one.state == "started" and not self._is_open(one)]
        for key in done:
            self._fired[key] = _replace(self._fired[key], state="ended")
        return len(done)

    def _is_open(self, firing: Firing) -> bool:
        row = self._tables.executions.get(firing.execution_id)
        return row is not None and msgspec.json.decode(row).get("ended_at") is None

    async def firings(self, schedule_id: str, before: int | None = None, limit: int = 50) -> list[Firing]:
        rows = sorted(self._fired.items(), reverse=True)
        return [one for key, one in rows if key[0] == schedule_id and (before is None or key[1] < before)][:limit]

    async def tally(self, schedule_id: str) -> dict[str, int]:
        rows = [one for key, one in self._fired.items() if key[0] == schedule_id]
        failed = [one for one in rows if one.state == "ended" and self._status(one) != "completed"]
        return {"failed": len(failed), **Counter(one.state for one in rows)}

    def _status(self, firing: Firing) -> str:
        return str(msgspec.json.decode(self._tables.executions.get(firing.execution_id, b"{}")).get("status", ""))

    async def forget(self, before: int) -> int:
        rows = [(key, one) for key, one in self._fired.items() if one.state not in (*OPEN, "started")]
        old = [key for key, one in rows if key[1] < before and one.decided_at < before]
        for key in old:
            del self._fired[key]
        return len(old)
