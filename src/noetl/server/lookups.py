"""Looks playbooks up in the catalog: those who ask for the same one at the same time share a look.

Nobody is given what was read before he asked, so that whoever has just registered a version starts it, at any server. Tested
in tests/unit/server/test_lookups.py.
"""

from __future__ import annotations

import asyncio

from noetl.ports import Catalog

_Name = tuple[str, int | None]


class Lookups:
    """Looks that are under way."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._looking: set[_Name] = set()
        self._asked: dict[_Name, asyncio.Future[str | None]] = {}  # by those who came after the look under way began
        self._tasks: set[asyncio.Task[None]] = set()

    async def content_hash(self, path: str, version: int | None = None) -> str | None:
        """Give the content hash of a version, the newest of its path where none is named."""
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
        """Look for those who came meanwhile, all at once, until nobody asks."""
        while (answer := self._asked.pop(name, None)) is not None:
            try:
                answer.set_result(await self._catalog.content_hash(*name))
            except Exception as error:  # noqa: BLE001  told to whoever asked
                answer.set_exception(error)
                answer.exception()  # also where nobody waits any more
        self._looking.discard(name)
