"""Catalog lookups: coalesced ones, and texts and versions by content hash.

A caller never gets a result read before its own request, so a version that was just registered is found at any server.
Tested in tests/unit/server/cache/test_catalog_lookup.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from noetl.dsl.diagnostic import did_you_mean
from noetl.ports import Catalog

_Name = tuple[str, int | None]
_MOST_PATHS = 1_000  # that are compared with a path that does not exist


async def similar_path(catalog: Catalog, path: str, within: Sequence[str] | None = None) -> str:
    """Return ` Did you mean 'x'?` for an unknown path of these namespaces, or nothing."""
    entries = await catalog.entries(None, None, _MOST_PATHS, within)
    return did_you_mean(path, [str(entry["path"]) for entry in entries])


class Versions(Protocol):
    """The versions of playbooks: of a catalog, or of a server's."""

    async def versions(self, path: str) -> list[Mapping[str, Any]]: ...

    async def find(self, path: str, version: int | None = None) -> Mapping[str, Any] | None: ...


async def text_of(catalog: Versions, playbook: str, path: str, version: int | None = None) -> bytes:
    """Return the text of a version with this content, or nothing if it was removed."""
    for place in (path, f"by-content/{playbook[:16]}") if version is None else (path,):
        kept = [int(row["version"]) for row in await catalog.versions(place) if row["playbook"] == playbook]
        wanted = min(kept, default=None) if version is None else version
        row = await catalog.find(place, wanted) if wanted in kept else None
        if row is not None:
            return bytes(row["content"])
    return b""


async def version_at(catalog: Versions, path: str, playbook: str, at: int) -> int | None:
    """Return the newest version with this content at a time, or None."""
    rows = [row for row in await catalog.versions(path) if row["playbook"] == playbook]
    before = [int(row["version"]) for row in rows if int(row["registered_at"]) <= at]
    return max(before, default=None) or min((int(row["version"]) for row in rows), default=None)


class CatalogLookup:
    """Catalog lookups in flight."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._looking: set[_Name] = set()
        self._asked: dict[_Name, asyncio.Future[str | None]] = {}  # callers that came after the current lookup began
        self._tasks: set[asyncio.Task[None]] = set()

    async def content_hash(self, path: str, version: int | None = None) -> str | None:
        """Return the content hash of a version, by default the latest."""
        name = (path, version)
        if name in self._looking:
            answer = self._asked.get(name)
            if answer is None:
                answer = self._asked[name] = asyncio.get_running_loop().create_future()
            return await asyncio.shield(answer)
        self._looking.add(name)
        try:
            return await self._catalog.content_hash(path, version)
        finally:
            if name in self._asked:
                task = asyncio.create_task(self._look(name), name="noetl-lookup")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                self._looking.discard(name)

    async def _look(self, name: _Name) -> None:
        while (answer := self._asked.pop(name, None)) is not None:
            try:
                answer.set_result(await self._catalog.content_hash(*name))
            except Exception as error:  # noqa: BLE001  the caller gets it
                answer.set_exception(error)
                answer.exception()  # so that it counts as retrieved
        self._looking.discard(name)
