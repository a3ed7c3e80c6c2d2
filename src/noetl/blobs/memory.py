"""Large results in memory, for tests. Tested in tests/conformance/test_blobs.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, BinaryIO

from noetl.blobs.ranges import missing, pieces, span


class MemoryBlobs:
    """Blobs by reference, in a dictionary."""

    def __init__(self) -> None:
        self._blobs: dict[str, tuple[bytes, Mapping[str, Any]]] = {}

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None:
        self._blobs[ref] = (bytes(data), dict(meta))

    async def put_file(self, ref: str, file: BinaryIO, meta: Mapping[str, Any]) -> None:
        await self.put(ref, b"".join(pieces(file)), meta)

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes:
        first, last = span(start, length)
        if ref not in self._blobs:
            raise missing(ref)
        return self._blobs[ref][0][first:last]

    async def about(self, ref: str) -> Mapping[str, Any]:
        if ref not in self._blobs:
            raise missing(ref)
        return self._blobs[ref][1]

    async def delete(self, refs: Sequence[str]) -> None:
        for ref in refs:
            self._blobs.pop(ref, None)

    async def stored(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        for ref, (_, meta) in list(self._blobs.items()):
            yield ref, meta

    async def tidy(self, before: int) -> int:  # noqa: ARG002  writes are atomic
        return 0
