"""Read the feed of the log for the triggers of one kind, on one server at a time.

The position is in the store and moves on when the reactions to a page are durable. A page can be read again, after a crash or
by another server, so a reaction must have a key that makes it happen once. A trigger that cannot be read is logged once and left
out, so it does not stop the others. Tested in tests/conformance/test_ended_triggers.py and
test_notifications.py.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final, Protocol

from noetl.model.errors import InvalidInput, NoetlError, log_level
from noetl.model.events import Event
from noetl.ports import Clock, EventLog
from noetl.ports.triggers import StoredTrigger, Triggers

_log = logging.getLogger(__name__)
_DUTY_MS: Final = 10_000
_PAGE: Final = 500
_SKIP_EVERY: Final = 30  # looks without triggers after which the position moves on
Read = Callable[[StoredTrigger], object]  # raises InvalidInput for one that cannot be read
React = Callable[[list[StoredTrigger], Event], Awaitable[None]]


class Duties(Protocol):
    """Duties that one of several servers has."""

    async def on_duty(self, name: str, holder: str, now: int, until: int) -> bool: ...


class TriggerFeed:
    """Feed of the log as the triggers of a kind see it."""

    def __init__(
        self,
        kind: str,
        triggers: Triggers,
        log: EventLog,
        duties: Duties,
        clock: Clock,
        react: React,
        read: Read,
        *,
        holder: str,
    ) -> None:
        self._kind = kind
        self._triggers = triggers
        self._log = log
        self._duties = duties
        self._clock = clock
        self._react = react
        self._read = read
        self._holder = holder
        self._idle = _SKIP_EVERY
        self._broken: frozenset[tuple[str, int]] = frozenset()  # ids and revisions that were logged

    async def repeat(self, look: Callable[[], Awaitable[None]], every_s: float) -> None:
        """Look until cancelled; what fails is tried again."""
        while True:
            try:
                await look()
            except NoetlError as error:
                _log.log(log_level(error), "Triggers of kind %s react later: %s", self._kind, error)
            except Exception as error:  # noqa: BLE001 - it must not end silently
                _log.exception("A trigger of kind %s failed; it is tried again", self._kind, exc_info=error)
            await self._clock.sleep(every_s)

    async def look(self, wanted: Callable[[list[StoredTrigger]], Collection[str]]) -> list[StoredTrigger]:
        """Read the feed to its end, and react to events of the wanted types.

        Events that paused triggers watch are passed over. Returns all triggers that can be read, or nothing if another
        server reads the feed.
        """
        found = await self._all()
        if not found:
            await self._skip()
            return []
        now = self._clock.now()
        if not await self._duties.on_duty(self._kind, self._holder, now, now + _DUTY_MS):
            return []
        types, active = tuple(wanted(found)), [one for one in found if not one.paused]
        position, revision = await self._triggers.position(self._kind)
        while page := await self._log.feed(position, _PAGE, types):
            for one in page:
                if active and one.event.event_type in types:
                    await self._react(active, one.event)
            position = {**position, **{one.writer_id: one.writer_seq for one in page}}
            if not await self._triggers.advance(self._kind, position, revision):
                return []
            revision += 1
        return found

    async def _all(self) -> list[StoredTrigger]:
        found: list[StoredTrigger] = []
        after: str | None = None
        while page := await self._triggers.triggers(self._kind, after=after, limit=_PAGE):
            after = page[-1].trigger_id
            found += page
        return self._readable(found)

    def _readable(self, found: list[StoredTrigger]) -> list[StoredTrigger]:
        """Leave out triggers that cannot be read, and log each of them once."""
        readable: list[StoredTrigger] = []
        broken: set[tuple[str, int]] = set()
        for one in found:
            try:
                self._read(one)
            except InvalidInput as error:
                name = (one.trigger_id, one.revision)
                broken.add(name)
                if name not in self._broken:
                    word = "trigger" if self._kind == "ended" else self._kind
                    _log.error("Left out the %s %s: %s", word, one.trigger_id, error)
            else:
                readable.append(one)
        self._broken = frozenset(broken)
        return readable

    async def _skip(self) -> None:
        """Move on without triggers, so that the first one does not read all that was."""
        self._idle += 1
        if self._idle < _SKIP_EVERY:
            return
        self._idle = 0
        position, revision = await self._triggers.position(self._kind)
        newest = dict(await self._log.writers())
        if newest != position:
            await self._triggers.advance(self._kind, newest, revision)
