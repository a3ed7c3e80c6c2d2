"""Blobs in the PostgreSQL store. Tested in tests/conformance/test_blobs.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, BinaryIO

import msgspec

from noetl.blobs.ranges import PIECE, missing, pieces, size_of, span
from noetl.stores.common.queries import queries
from noetl.stores.postgres.database import PostgresDatabase

_SQL = queries("postgres")
_LONGEST = 500
_PAGE = 500
_REF = ""  # key in the stored `meta`: the address, if it is not the name of the row


class PostgresBlobs:
    """Blobs as rows of the table `result`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None:
        await self._database.rows("put_result", _name(ref), data, _encode_meta(ref, meta))

    async def put_file(self, ref: str, file: BinaryIO, meta: Mapping[str, Any]) -> None:
        if size_of(file) <= PIECE:
            await self.put(ref, b"".join(pieces(file)), meta)
            return
        async with self._database.transaction() as connection:
            for number, piece in enumerate(pieces(file)):  # another writer of the same blob waits at the first piece
                await connection.execute(_SQL["put_piece"], _name(ref), number, piece)
            await connection.execute(_SQL["put_result_of_pieces"], _name(ref), _encode_meta(ref, meta))

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
        return _decode_meta(rows[0][0])[1]

    async def delete(self, refs: Sequence[str]) -> None:
        await self._database.rows("remove_results", [_name(ref) for ref in refs])

    async def stored(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        after = ""
        while rows := await self._database.rows("list_results", after, _PAGE):
            for after, text in rows:
                ref, meta = _decode_meta(text)
                yield ref or after.replace("%00", "\0").replace("%25", "%"), meta

    async def tidy(self, before: int) -> int:  # noqa: ARG002  writes are atomic
        return 0


def _encode_meta(ref: str, meta: Mapping[str, Any]) -> str:
    stored = meta if _escape(ref) == _name(ref) else {**meta, _REF: ref}
    return msgspec.json.encode(stored).decode()


def _decode_meta(text: str) -> tuple[str | None, dict[str, Any]]:
    meta: dict[str, Any] = msgspec.json.decode(text)
    return meta.pop(_REF, None), meta


def _escape(ref: str) -> str:
    return ref.replace("%", "%25").replace("\0", "%00")


def _name(ref: str) -> str:
    """Return the address without NUL, shortened if it is too long for an index."""
    escaped = _escape(ref)
    return escaped if len(escaped) <= _LONGEST else f"{escaped[:_LONGEST]}#{sha256(escaped.encode()).hexdigest()}"
