"""Retention: find and delete executions that ended before a time.

Deleted are the log and every row of the execution; its stored results are garbage from then on, which `result_gc` collects.
Open executions are never deleted. Tested in tests/acceptance/admin/test_prune.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from noetl.ports import AuditEntry, EventLog, Selection

_PAGE: Final = 500


async def ended_before(log: EventLog, before: int, statuses: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """Return the rows of executions with these statuses that ended before a time."""
    found: list[Mapping[str, Any]] = []
    cursor: str | None = None
    while True:
        page = await log.executions(Selection(statuses, until=before, before=cursor, limit=_PAGE))
        found += [row for row in page if (row.get("ended_at") or before) < before]
        if len(page) < _PAGE:
            return found
        cursor = str(page[-1]["execution_id"])


async def delete_executions(log: EventLog, execution_ids: Iterable[str], now: int, by: str) -> list[str]:
    """Delete executions that have ended; return those that were deleted."""
    return [name for name in execution_ids if await log.remove(name, AuditEntry(now, by, "execution.delete", name))]
