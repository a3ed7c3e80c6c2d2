"""Prune by age: closed dead letters, and executions that ended long ago.

One of several servers does it every hour, a page at a time. Open executions stay, and executions stay for ever unless a
retention is set. Their stored results are garbage afterwards, which `result_gc` collects. Tested in
tests/conformance/test_pruning.py.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple, Protocol

from noetl.model.errors import NoetlError, log_level
from noetl.ports import AuditEntry, Clock, EventLog, Selection
from noetl.ports.letters import DeadLetters

_log = logging.getLogger(__name__)
_DUTY: Final = "pruning"
_ENDED: Final = ("completed", "failed", "cancelled", "partial")
_BY: Final = "retention"  # actor of the entries in the audit trail
_DAY_MS: Final = 86_400_000
_FIRST_S: Final = 60.0
_EVERY_S: Final = 3_600.0
_DUTY_MS: Final = 120_000
_PAGE: Final = 200
_BREATH_S: Final = 0.05  # between two executions, so that others write too


class Log(EventLog, DeadLetters, Protocol):
    """A log and its dead letters."""


class Duties(Protocol):
    """Duties that one of several servers has."""

    async def on_duty(self, name: str, holder: str, now: int, until: int) -> bool: ...


class Retention(NamedTuple):
    """How long things are kept, in days; 0 executions: for ever."""

    letters: int
    executions: int


class Pruning:
    """Prune a store periodically."""

    def __init__(self, log: Log, duties: Duties, clock: Clock, retention: Retention, *, holder: str) -> None:
        self._log = log
        self._duties = duties
        self._clock = clock
        self._retention = retention
        self._holder = holder

    async def run(self) -> None:
        """Prune until cancelled."""
        pause = _FIRST_S
        while True:
            await self._clock.sleep(pause)
            pause = _EVERY_S
            try:
                letters, executions = await self.prune()
            except NoetlError as error:
                _log.log(log_level(error), "Old executions and dead letters are pruned later: %s", error)
            except Exception as error:  # noqa: BLE001 - it must not end silently
                _log.exception("Pruning failed; it is tried again", exc_info=error)
            else:
                if letters or executions:
                    _log.info("Pruned %d executions and %d closed dead letters.", executions, letters)

    async def prune(self) -> tuple[int, int]:
        """Remove what is too old; return how many dead letters and executions."""
        if not await self._is_on_duty():
            return 0, 0
        letters = await self._log.prune_letters(self._clock.now() - self._retention.letters * _DAY_MS)
        return letters, await self._executions() if self._retention.executions else 0

    async def _executions(self) -> int:
        before = self._clock.now() - self._retention.executions * _DAY_MS
        count, cursor = 0, None
        while await self._is_on_duty():
            page = await self._log.executions(Selection(_ENDED, until=before, before=cursor, limit=_PAGE))
            for row in page:
                name = str(row["execution_id"])
                if (row.get("ended_at") or before) < before:
                    count += await self._log.remove(name, AuditEntry(self._clock.now(), _BY, "execution.delete", name))
                    await self._clock.sleep(_BREATH_S)
            if len(page) < _PAGE:
                break
            cursor = str(page[-1]["execution_id"])
        return count

    async def _is_on_duty(self) -> bool:
        now = self._clock.now()
        return await self._duties.on_duty(_DUTY, self._holder, now, now + _DUTY_MS)
