"""Large results in the PostgreSQL database of the store. Tested in tests/conformance/test_blobs.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from noetl.blobs.ranges import missing, span
from noetl.stores.postgres_database import PostgresDatabase

_LONGEST = 500
_PAGE = 500
_REF = ""  # beside what was told of a blob: its address, where it is too long to be its name


class PostgresBlobs:
    """Blobs as rows of the table `result`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None:
        name = _name(ref)
        told = meta if _plain(ref) == name else {**meta, _REF: ref}
        await self._database.rows("put_result", name, data, msgspec.json.encode(told).decode())

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
        return _told(rows[0][0])[1]

    async def delete(self, refs: Sequence[str]) -> None:
        await self._database.rows("remove_results", [_name(ref) for ref in refs])

    async def stored(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        after = ""
        while rows := await self._database.rows("list_results", after, _PAGE):
            for after, told in rows:
                ref, meta = _told(told)
                yield ref or after.replace("%00", "\0").replace("%25", "%"), meta

    async def tidy(self, before: int) -> int:  # noqa: ARG002  a blob is put whole here, or not at all
        return 0


def _told(text: str) -> tuple[str | None, dict[str, Any]]:
    meta: dict[str, Any] = msgspec.json.decode(text)
    return meta.pop(_REF, None), meta


def _plain(ref: str) -> str:
    return ref.replace("%", "%25").replace("\0", "%00")


def _name(ref: str) -> str:
    """Give a reference as the database can hold it: without a NUL, and not too long for an index."""
    plain = _plain(ref)
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}#{sha256(plain.encode()).hexdigest()}"
