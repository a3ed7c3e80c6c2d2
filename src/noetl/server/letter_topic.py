"""Publishes dead letters: each that comes, or comes again, is a message of the outbox too, under one topic.

Letters are looked up in the store and put under a key of their own, so that all servers may do it and each goes out once; a
server that was killed meanwhile is made up for by the next look. Delivers nothing itself: that is the relay. Tested in
tests/conformance/test_letter_topic.py.
"""

from __future__ import annotations

from typing import Final

import msgspec

from noetl.model.letters import PENDING, DeadLetter
from noetl.ports import Clock
from noetl.ports.letters import DeadLetters, LetterSelection
from noetl.ports.outbox import OutboxIn, OutboxMessage

_PAGE: Final = 500
_OVERLAP_MS: Final = 60_000  # a letter may be written so much later than it says: clocks differ


class LetterTopic:
    """The dead letters of a store, as messages."""

    def __init__(self, letters: DeadLetters, outbox: OutboxIn, clock: Clock, topic: str, kept_ms: int) -> None:
        self._letters = letters
        self._outbox = outbox
        self._clock = clock
        self._topic = topic
        self._kept_ms = kept_ms  # how long the outbox knows what was delivered: what is older is never put again
        self._since: int | None = None
        self._put: dict[str, int] = {}  # key → when its letter came

    async def publish(self) -> int:
        """Put what came since the last look into the outbox; gives how many there were."""
        now = self._clock.now()
        since = now - max(self._kept_ms // 2, _OVERLAP_MS) if self._since is None else self._since - _OVERLAP_MS
        self._put = {key: at for key, at in self._put.items() if at >= since}
        count = 0
        for letter in reversed(await self._found(since)):
            key = f"dlq:{letter.message_id}:{letter.last_seen}"
            if key not in self._put:
                await self._outbox.put(self._message(key, letter), now)
                self._put[key] = letter.last_seen
                count += 1
        self._since = now
        return count

    async def _found(self, since: int) -> list[DeadLetter]:
        """Give the letters that wait and came since a time, the last one first."""
        found: list[DeadLetter] = []
        asked = LetterSelection(status=(PENDING,), limit=_PAGE)
        while page := await self._letters.letters(asked):
            recent = [letter for letter in page if letter.last_seen >= since]
            found += recent
            if len(recent) < _PAGE:
                break
            asked = msgspec.structs.replace(asked, before=page[-1].message_id)
        return found

    def _message(self, key: str, letter: DeadLetter) -> OutboxMessage:
        payload = msgspec.to_builtins(letter)
        return OutboxMessage(key, self._topic, payload=payload, execution_id=letter.execution_id)
