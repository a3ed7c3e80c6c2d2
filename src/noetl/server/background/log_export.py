"""Export the event log to a target, in batches, by one server at a time.

The position is in the store and moves on when a batch is durable at the target, so nothing is lost by a crash of either
side. Memory holds one batch. A target that fails or is slow delays only its own export: it is tried again with back-off, with
one warning per outage. Tested in tests/conformance/test_log_export.py.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

import msgspec

from noetl.model.errors import NoetlError, log_level
from noetl.model.events import Event
from noetl.observe.export.counts import ExportCounts
from noetl.observe.export.target import Exported, ExportError, ExportTarget
from noetl.ports import Clock, EventLog

_log = logging.getLogger(__name__)
PREFIX: Final = "export:"  # of the names of positions
_DUTY_MS: Final = 40_000  # longer than a request takes at most
_PAGE: Final = 500
_AT_ONCE: Final = 200  # events that are masked before other tasks run
_MOST_BYTES: Final = 8 << 20  # of payloads in a batch
_MOST_PATHS: Final = 10_000
_LOOK_S: Final = 1.0  # while nothing happens
_IDLE_S: Final = 5.0  # while another server exports
_MOST_PAUSE_S: Final = 60.0


class Positions(Protocol):
    """How far readers of the feed got."""

    async def position(self, name: str) -> tuple[dict[str, int], int]: ...

    async def advance(self, name: str, position: Mapping[str, int], revision: int) -> bool: ...


class Duties(Protocol):
    """Duties that one of several servers has."""

    async def on_duty(self, name: str, holder: str, now: int, until: int) -> bool: ...


class _Batch(msgspec.Struct):
    """Events after a position, and the position after them."""

    events: list[Exported]
    position: dict[str, int]
    is_full: bool = False  # more follow


class LogExport:
    """Export to one target."""

    def __init__(
        self,
        target: ExportTarget,
        log: EventLog,
        positions: Positions,
        duties: Duties,
        clock: Clock,
        mask: Callable[[Event], tuple[Event, bytes]],  # with the payload as JSON
        counts: ExportCounts,
        *,
        holder: str,
    ) -> None:
        self._target = target
        self.name = PREFIX + target.name
        self._log = log
        self._positions = positions
        self._duties = duties
        self._clock = clock
        self._mask = mask
        self._counts = counts
        self._holder = holder
        self._renew_at = self._until = 0  # when the duty is renewed, and when it ends
        self._place: tuple[dict[str, int], int] | None = None  # position and revision; None: to be read
        self._is_repeat = True  # events after the position may have arrived before
        self._failures = 0
        self._failed_at = 0
        self._paths: dict[str, str] = {}  # execution → path of its playbook

    async def run(self) -> None:
        """Export until cancelled."""
        try:
            while True:
                await self._clock.sleep(await self._turn())
        finally:
            await self._target.close()
            with suppress(NoetlError):
                now = self._clock.now()
                if now < self._until:  # another server takes over at once
                    await self._duties.on_duty(self.name, self._holder, now, now)

    async def _turn(self) -> float:
        """Export what is there; return the pause before the next turn."""
        try:
            return await self.export()
        except NoetlError as error:
            _log.log(log_level(error), "The export to %s goes on later: %s", self._target.name, error)
        except ExportError as error:
            return self._fail(str(error))
        except ExceptionGroup as group:
            return self._fail(str(group.exceptions[0]))
        except Exception as error:  # noqa: BLE001 - the export must not end silently
            _log.exception("The export to %s failed; it is tried again", self._target.name, exc_info=error)
            self._reset()
        return self._target.every_s

    async def export(self) -> float:
        """Send batches to the end of the log; return the pause. Raises ExportError."""
        while True:
            if not await self._is_on_duty():
                return _IDLE_S
            if self._place is None:
                self._place = await self._positions.position(self.name)
                await self._target.prepare()
            position, revision = self._place
            batch = await self._read(position)
            if batch.position == position:
                self._counts.wait(self._target.name, None)
                return min(_LOOK_S, self._target.every_s)
            await self._send(batch, position)
            if not await self._positions.advance(self.name, batch.position, revision):
                self._reset()  # another server has taken over
                return self._target.every_s
            self._place, self._is_repeat = (batch.position, revision + 1), False
            self._counts.events[self._target.name,] += len(batch.events)
            self._recover()
            if not batch.is_full:
                self._counts.wait(self._target.name, None)
                return self._target.every_s

    async def _is_on_duty(self) -> bool:
        now = self._clock.now()
        if now < self._renew_at:
            return True
        if await self._duties.on_duty(self.name, self._holder, now, now + _DUTY_MS):
            if now >= self._until:
                self._reset()  # another server may have exported meanwhile
            self._renew_at, self._until = now + _DUTY_MS // 3, now + _DUTY_MS
            return True
        self._reset()
        self._counts.leave(self._target.name)
        return False

    async def _read(self, position: Mapping[str, int]) -> _Batch:
        batch, size = _Batch([], dict(position)), 0
        while len(batch.events) < self._target.most and size < _MOST_BYTES:
            page = await self._log.feed(batch.position, _PAGE, self._target.wanted)
            for number, one in enumerate(page):
                batch.position[one.writer_id] = one.writer_seq
                if self._target.wanted is None or one.event.event_type in self._target.wanted:
                    event, coded = self._mask(one.event)
                    exported = Exported.of(event, await self._path(one.event), coded)
                    batch.events.append(exported)
                    size += len(exported.payload)
                if number % _AT_ONCE == _AT_ONCE - 1:
                    await asyncio.sleep(0)
            if not page or (self._target.wanted is None and len(page) < _PAGE):
                return batch
        batch.is_full = True
        return batch

    async def _path(self, event: Event) -> str:
        found = self._paths.get(event.execution_id)
        if found is None:
            row: Mapping[str, Any] | None = None
            if event.event_type == "playbook.execution.requested" and "path" in event.payload:
                row = event.payload
            else:
                row = await self._log.execution(event.execution_id)
            found = self._paths[event.execution_id] = str((row or {}).get("path", ""))
            if len(self._paths) > _MOST_PATHS:
                del self._paths[next(iter(self._paths))]
        return found

    async def _send(self, batch: _Batch, position: Mapping[str, int]) -> None:
        if not batch.events:
            return
        self._counts.wait(self._target.name, min(one.event.timestamp for one in batch.events))
        begin = hashlib.sha256(msgspec.json.encode(sorted(position.items()))).hexdigest()[:20]
        is_repeat, self._is_repeat = self._is_repeat, True  # until the store knows that it arrived
        await self._target.send(batch.events, begin, is_repeat=is_repeat)

    def _fail(self, why: str) -> float:
        self._counts.failures[self._target.name,] += 1
        self._reset()
        if not self._failures:
            self._failed_at = self._clock.now()
            _log.warning(
                "The export to %s is interrupted: %s. Events stay in the store and are exported when it works again.",
                self._target.name, why,
            )  # fmt: skip
        self._failures += 1
        return float(min(_MOST_PAUSE_S, 2 ** min(self._failures - 1, 10)))

    def _recover(self) -> None:
        if self._failures:
            seconds = (self._clock.now() - self._failed_at) // 1000
            _log.info("The export to %s works again after %d s.", self._target.name, seconds)
            self._failures = 0

    def _reset(self) -> None:
        self._place, self._is_repeat, self._renew_at = None, True, 0


async def behind(target: str, log: EventLog, positions: Positions) -> int:
    """Return how many events a target does not have.

    Events that were pruned before they were exported count too.
    """
    position, _ = await positions.position(PREFIX + target)
    newest = await log.writers()
    return sum(max(0, last - position.get(writer, 0)) for writer, last in newest.items())


async def restart(target: str, positions: Positions) -> bool:
    """Export the whole log to a target again; False if its position just moved on."""
    _, revision = await positions.position(PREFIX + target)
    return not revision or await positions.advance(PREFIX + target, {}, revision)
