"""Several blob stores as one.

The `meta` of a blob names its store, and reads search all of them. Tested in tests/conformance/test_blobs.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, BinaryIO

from noetl.blobs.ranges import missing
from noetl.model.errors import InvalidInput
from noetl.ports import BlobStore


class BlobRouter:
    """Blob stores by the names that playbooks use, such as `db` and `file`."""

    def __init__(self, shelves: Mapping[str, BlobStore]) -> None:
        self._shelves = shelves

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None:
        await self._store_for(meta).put(ref, data, meta)

    async def put_file(self, ref: str, file: BinaryIO, meta: Mapping[str, Any]) -> None:
        await self._store_for(meta).put_file(ref, file, meta)

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes:
        return await (await self._find(ref)).get(ref, start, length)

    async def about(self, ref: str) -> Mapping[str, Any]:
        return await (await self._find(ref)).about(ref)

    async def delete(self, refs: Sequence[str]) -> None:
        for shelf in self._shelves.values():
            await shelf.delete(refs)

    async def stored(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        for shelf in self._shelves.values():
            async for one in shelf.stored():
                yield one

    async def tidy(self, before: int) -> int:
        return sum([await shelf.tidy(before) for shelf in self._shelves.values()])

    def _store_for(self, meta: Mapping[str, Any]) -> BlobStore:
        name = str(meta.get("store", next(iter(self._shelves))))
        if name not in self._shelves:
            names = ", ".join(f"`{name}`" for name in self._shelves)
            raise InvalidInput(f"results cannot be stored in `{name}` here; there are {names}")
        return self._shelves[name]

    async def _find(self, ref: str) -> BlobStore:
        for shelf in self._shelves.values():
            try:
                await shelf.about(ref)
            except InvalidInput:
                continue
            return shelf
        raise missing(ref)
