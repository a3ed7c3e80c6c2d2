"""End what a token keeps open, soon after it was revoked or has expired.

Sessions, streams, long polls and unfinished uploads register while they are open; every server asks the store about their
tokens several times a second, so a revocation on any server ends them all within a second. Tested in
tests/server/auth/test_revocation.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Protocol

from noetl.model.errors import NoetlError, log_level
from noetl.ports import Clock

_EVERY_S = 0.25
_log = logging.getLogger(__name__)


class ValidTokens(Protocol):
    """Tokens and sessions that have not ended."""

    async def valid_tokens(self, token_ids: Collection[str], now: int) -> set[str]: ...


class TokenEnded(Exception):  # noqa: N818  it is an answer, not a bug
    """The token of a caller was revoked or has expired while it waited."""


class _Held:
    """A task that waits in the name of a token."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        self._task = task
        self._cancelling = task.cancelling()
        self.is_ended = False

    def end(self) -> None:
        if not self.is_ended:
            self.is_ended = True
            self._task.cancel()

    def is_only_cause(self) -> bool:
        """Return whether nothing but the end of the token cancels the task."""
        return self._task.uncancel() <= self._cancelling


class Revocation:
    """Tasks by the id of the token that they wait for."""

    def __init__(self, tokens: ValidTokens, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock
        self._held: dict[str, set[_Held]] = {}

    @contextmanager
    def valid(self, token_id: str | None) -> Iterator[None]:
        """Interrupt the block when the token ends. Raises TokenEnded."""
        task = asyncio.current_task()
        if token_id is None or task is None:
            yield
            return
        held = _Held(task)
        self._held.setdefault(token_id, set()).add(held)
        try:
            yield
        except asyncio.CancelledError:
            if not held.is_ended or not held.is_only_cause():
                raise
            raise TokenEnded from None
        finally:
            holders = self._held[token_id]
            holders.discard(held)
            if not holders:
                del self._held[token_id]

    async def run(self) -> None:
        """Look for tokens that ended, until cancelled."""
        while True:
            await self._clock.sleep(_EVERY_S)
            try:
                await self.look()
            except NoetlError as error:
                _log.log(log_level(error), "Tokens are not checked for revocation: %s", error)

    async def look(self) -> None:
        """End what tokens keep open that are revoked, expired or removed."""
        asked = list(self._held)
        if asked:
            for token_id in set(asked) - await self._tokens.valid_tokens(asked, self._clock.now()):
                for held in list(self._held.get(token_id, ())):
                    held.end()
