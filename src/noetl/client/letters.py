"""The dead letters of a server, for `noetl.Client`.

Tested in tests/server/test_dead_letters.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from noetl.client.http import Http
from noetl.wire.letters import Discarded, Letter, LetterGroup, LetterGroups, Letters, Replayed

_PLACE = "/api/dlq"


class LetterCalls:
    """What people ask of dead letters."""

    _http: Http

    async def letters(
        self, *, status: Sequence[str] = ("pending",), cursor: str | None = None, limit: int = 100, **asked: str | None
    ) -> Letters:
        """List dead letters, the one that failed last first; by `group`, `execution_id`, `path`, `step`, `kind`."""
        query = _query(status=list(status), cursor=cursor, limit=limit, **asked)
        return await self._http.ask("GET", _PLACE, Letters, query=query)

    async def letter_groups(
        self, *, status: Sequence[str] = ("pending",), limit: int = 100, **asked: str | None
    ) -> list[LetterGroup]:
        """List the causes of dead letters."""
        query = _query(status=list(status), limit=limit, **asked)
        return (await self._http.ask("GET", f"{_PLACE}/groups", LetterGroups, query=query)).groups

    async def letter(self, message_id: str) -> Letter:
        """Give a dead letter with everything that is known of it."""
        return await self._http.ask("GET", _one(message_id), Letter)

    async def replay_letter(
        self,
        message_id: str,
        patch: Mapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> Replayed:
        """Do the work of a dead letter once more."""
        body = {"patch": dict(patch or {}), "dry_run": dry_run}
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return await self._http.ask("POST", _one(message_id, "replay"), Replayed, body, headers=headers)

    async def replay_letters(
        self,
        *,
        patch: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        everything: bool = False,
        idempotency_key: str | None = None,
        **asked: str | None,
    ) -> Replayed:
        """Do the work of all letters that wait and fit: by `group`, `execution_id`, `path`, `step`, `kind`."""
        body = {"patch": dict(patch or {}), "dry_run": dry_run, "all": everything, **_query(**asked)}
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return await self._http.ask("POST", f"{_PLACE}/replay", Replayed, body, headers=headers)

    async def discard_letter(self, message_id: str, reason: str) -> Discarded:
        """Close a dead letter without doing its work."""
        return await self._http.ask("POST", _one(message_id, "discard"), Discarded, {"reason": reason})

    async def discard_letters(self, reason: str, *, everything: bool = False, **asked: str | None) -> Discarded:
        """Close all letters that wait and fit."""
        body = {"reason": reason, "all": everything, **_query(**asked)}
        return await self._http.ask("POST", f"{_PLACE}/discard", Discarded, body)


def _one(message_id: str, verb: str = "") -> str:
    return f"{_PLACE}/{quote(message_id, safe='')}" + (f"/{verb}" if verb else "")


def _query(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
