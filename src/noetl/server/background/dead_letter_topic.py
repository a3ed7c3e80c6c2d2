"""Publish dead letters: put each in the outbox under one topic.

Every letter has its own key in the outbox, so several servers can publish and each letter is sent once; after a crash the
next scan catches up. The relay delivers the messages. Tested in tests/conformance/test_dead_letter_topic.py.
"""

from __future__ import annotations

from typing import Final

import msgspec

from noetl.model.letters import PENDING, DeadLetter
from noetl.ports import Clock
from noetl.ports.letters import DeadLetters, LetterSelection
from noetl.ports.outbox import OutboxIn, OutboxMessage

_PAGE: Final = 500
_OVERLAP_MS: Final = 60_000  # tolerated clock difference: a letter may be written this much later than its timestamp


class DeadLetterTopic:
    """Publish the dead letters of a store as outbox messages."""

    def __init__(self, letters: DeadLetters, outbox: OutboxIn, clock: Clock, topic: str, kept_ms: int) -> None:
        self._letters = letters
        self._outbox = outbox
        self._clock = clock
        self._topic = topic
        self._kept_ms = kept_ms  # the outbox deduplicates for this long; older letters are never put again
        self._since: int | None = None
        self._put: dict[str, int] = {}  # key → time of its letter

    async def publish(self) -> int:
        """Put letters since the last scan into the outbox; return their number."""
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
