"""Blobs in the SQLite store. Tested in tests/conformance/test_blobs.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from sqlite3 import Connection
from typing import Any, BinaryIO

import msgspec

from noetl.blobs.ranges import missing, pieces, size_of, span
from noetl.stores.common.queries import queries
from noetl.stores.sqlite.database import Database

_SQL = queries("sqlite")
_PAGE = 500


class DatabaseBlobs:
    """Blobs by reference, in a table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None:
        row = (ref, data, msgspec.json.encode(meta).decode())
        await self._database.write(lambda connection: connection.execute(_SQL["put_result"], row))

    async def put_file(self, ref: str, file: BinaryIO, meta: Mapping[str, Any]) -> None:
        row = (ref, msgspec.json.encode(meta).decode(), size_of(file))

        def job(connection: Connection) -> None:
            connection.execute(_SQL["remove_result"], (ref,))
            number = connection.execute(_SQL["put_empty_result"], row).lastrowid
            with connection.blobopen("result", "data", number or 0) as blob:
                for piece in pieces(file):
                    blob.write(piece)

        await self._database.write(job)

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes:
        first, last = span(start, length)
        found = await self._database.run(partial(_read, ref, first, last))
        if found is None:
            raise missing(ref)
        return found

    async def about(self, ref: str) -> Mapping[str, Any]:
        row = await self._database.run(
            lambda connection: connection.execute(_SQL["read_result_meta"], (ref,)).fetchone()
        )
        if row is None:
            raise missing(ref)
        found: dict[str, Any] = msgspec.json.decode(row[0])
        return found

    async def delete(self, refs: Sequence[str]) -> None:
        rows = [(ref,) for ref in refs]
        await self._database.write(lambda connection: connection.executemany(_SQL["remove_result"], rows))

    async def stored(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        after = ""
        while rows := await self._database.run(partial(_list_page, after)):
            for after, meta in rows:
                yield after, msgspec.json.decode(meta)

    async def tidy(self, before: int) -> int:  # noqa: ARG002  writes are atomic
        return 0


def _read(ref: str, first: int, last: int | None, connection: Connection) -> bytes | None:
    row = connection.execute(_SQL["find_result"], (ref,)).fetchone()
    if row is None:
        return None
    with connection.blobopen("result", "data", row[0], readonly=True) as blob:
        size = len(blob)
        blob.seek(min(first, size))
        return blob.read(size if last is None else max(0, min(last, size) - first))


def _list_page(after: str, connection: Connection) -> list[tuple[str, str]]:
    return list(connection.execute(_SQL["list_results"], (after, _PAGE)))
