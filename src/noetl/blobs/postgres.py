"""Large results in the PostgreSQL database of the store. Tested in tests/conformance/test_blobs.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from noetl.blobs.ranges import missing, span
from noetl.stores.postgres_database import PostgresDatabase

_LONGEST = 500


class PostgresBlobs:
    """Blobs as rows of the table `result`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None:
        await self._database.rows("put_result", _name(ref), data, msgspec.json.encode(meta).decode())

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes:
        first, last = span(start, length)
        if last is None:
            rows = await self._database.rows("read_whole_result", _name(ref), first + 1)
        else:
            rows = await self._database.rows("read_result", _name(ref), first + 1, last - first)
        if not rows:
            raise missing(ref)
        return bytes(rows[0][0])

    async def about(self, ref: str) -> Mapping[str, Any]:
        rows = await self._database.rows("read_result_meta", _name(ref))
        if not rows:
            raise missing(ref)
        found: dict[str, Any] = msgspec.json.decode(rows[0][0])
        return found

    async def delete(self, refs: Sequence[str]) -> None:
        await self._database.rows("remove_results", [_name(ref) for ref in refs])


def _name(ref: str) -> str:
    """Give a reference as the database can hold it: without a NUL, and not too long for an index."""
    plain = ref.replace("%", "%25").replace("\0", "%00")
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}#{sha256(plain.encode()).hexdigest()}"
