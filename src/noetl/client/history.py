"""`History` by HTTP.

Tested in tests/client/test_api.py and tests/acceptance/servers/test_context_cli.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from noetl.client.api import Client
from noetl.model.errors import InvalidInput, UnknownExecution
from noetl.model.events import Event
from noetl.model.work import Line
from noetl.ports import Selection, WorkerInfo
from noetl.wire.screens.compare import Compared

PAGE = 1_000  # executions that a server lists at once


class RemoteHistory:
    """Executions and their logs on a server."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def execution(self, execution_id: str) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = msgspec.to_builtins(await self.client.status(execution_id))
        except UnknownExecution:
            return None
        return found

    async def executions(self, selection: Selection) -> list[Mapping[str, Any]]:
        """List executions, a page at a time; a search goes back as far as it must."""
        found: list[Mapping[str, Any]] = []
        cursor = selection.before
        while True:
            page = await self.client.executions(
                status=selection.status,
                path=selection.path,
                search=selection.text,
                tag=selection.tag,
                parent=selection.parent,
                since=selection.since,
                until=selection.until,
                cursor=cursor,
                limit=min(selection.limit - len(found), PAGE),
            )
            found += [msgspec.to_builtins(row) for row in page.executions]
            cursor = page.scanned_to or page.next
            if cursor is None or len(found) >= selection.limit:
                return found

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        return await self.client.events(execution_id, after, limit=limit)

    async def view(self, execution_id: str, seq: int | None) -> dict[str, Any]:
        """Return the state after an event, as the server folds it."""
        found = msgspec.structs.asdict(await self.client.state(execution_id, seq))
        return {name: found[name] for name in ("seq", "event", "status", "checksum")} | dict(found["state"])

    async def compare(self, execution_id: str, other: str) -> Compared:
        """Compare two executions, as the server does."""
        return await self.client.compare(execution_id, other)

    async def canonical(self, playbook: str) -> bytes | None:
        return await self.client.canonical(playbook)

    async def versions(self, path: str) -> list[Mapping[str, Any]]:
        """List the versions of a path, newest first."""
        return [msgspec.to_builtins(one) for one in await self.client.versions(path)]

    async def find(self, path: str, version: int | None = None) -> Mapping[str, Any] | None:
        """Return a version with its content."""
        try:
            found = await self.client.playbook(path, version)
        except InvalidInput:
            return None
        return {**msgspec.structs.asdict(found), "content": (found.content or "").encode()}

    async def line(self, execution_id: str) -> Line:
        """Return where an execution and its queued work stand."""
        found = await self.client.line(execution_id)
        return Line(
            {one.work_id: one.ahead for one in found.work},
            found.group,
            found.position,
            tuple(found.running),
            {one.work_id: tuple(one.limits) for one in found.work if one.limits},
            found.held_by,
            found.turn_at,
            found.full,
        )

    async def workers(self) -> list[WorkerInfo]:
        """Return the workers of the server."""
        return [msgspec.convert(msgspec.to_builtins(row), WorkerInfo) for row in await self.client.workers()]

    def follow(self, execution_id: str) -> AsyncIterator[Event]:
        """Yield the events of an execution as they are committed."""
        return self.client.follow(execution_id)
