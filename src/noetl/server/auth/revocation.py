"""End what a token keeps open, soon after it was revoked, has expired or may less.

Sessions, streams, long polls and unfinished uploads register while they are open, with the rights that they were checked
against; every server asks the store about their tokens several times a second, so a revocation on any server, or another
role of a user or a group, ends them all within a second. Tested in tests/server/auth/test_revocation.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from noetl.model.errors import NoetlError, log_level
from noetl.ports import Clock

_EVERY_S = 0.25
_log = logging.getLogger(__name__)


class ValidTokens(Protocol):
    """Tokens and sessions that have not ended."""

    async def rights(self, token_ids: Collection[str], now: int) -> Mapping[str, object]:
        """Return what those may that have not ended; None: what they always could."""


class TokenEnded(Exception):  # noqa: N818  it is an answer, not a bug
    """The token of a caller was revoked or has expired while it waited."""


class RightsChanged(Exception):  # noqa: N818  likewise
    """A caller got other roles while it waited."""


class _Held:
    """A task that waits in the name of a token."""

    def __init__(self, task: asyncio.Task[object], rights: object) -> None:
        self._task = task
        self._rights = rights
        self._cancelling = task.cancelling()
        self.ended: type[Exception] | None = None  # by what

    def check(self, rights: Mapping[str, object], token_id: str) -> None:
        """End the wait of a token that has ended, or that may now do other things."""
        if token_id not in rights:
            self._end(TokenEnded)
        elif rights[token_id] not in (None, self._rights):
            self._end(RightsChanged)

    def _end(self, by: type[Exception]) -> None:
        if self.ended is None:
            self.ended = by
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
    def valid(self, token_id: str | None, rights: object = None) -> Iterator[None]:
        """Interrupt the block when the token or these rights end.

        Raises TokenEnded or RightsChanged.
        """
        task = asyncio.current_task()
        if token_id is None or task is None:
            yield
            return
        held = _Held(task, rights)
        self._held.setdefault(token_id, set()).add(held)
        try:
            yield
        except asyncio.CancelledError:
            if held.ended is None or not held.is_only_cause():
                raise
            raise held.ended from None
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
        """End what is open for tokens that have ended, or that may do other things."""
        asked = list(self._held)
        if asked:
            rights = await self._tokens.rights(asked, self._clock.now())
            for token_id in asked:
                for held in list(self._held.get(token_id, ())):
                    held.check(rights, token_id)
