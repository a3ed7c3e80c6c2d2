"""Every blob store: whole blobs, ranges, and a clear error for a missing blob."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from noetl.blobs.database import DatabaseBlobs
from noetl.blobs.files import FileBlobs
from noetl.blobs.memory import MemoryBlobs
from noetl.blobs.postgres import PostgresBlobs
from noetl.blobs.shelves import BlobRouter
from noetl.model.errors import InvalidInput, StoreUnavailable
from noetl.ports import BlobStore
from noetl.stores.postgres.database import PostgresDatabase
from noetl.stores.sqlite.database import Database
from tests.databases import fresh_database

pytestmark = pytest.mark.asyncio
REF = "noetl://execution/1/step/a/task/t/run/1/attempt/1"


@pytest_asyncio.fixture(params=["memory", "files", "database", "shelves", "postgres"])
async def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BlobStore]:
    if request.param == "postgres":
        server = PostgresDatabase(fresh_database())
        yield PostgresBlobs(server)
        await server.close()
    elif request.param == "database":
        database = Database(tmp_path / "noetl.db")
        yield DatabaseBlobs(database)
        await database.close()
    else:
        if request.param == "shelves":
            yield BlobRouter({"db": MemoryBlobs(), "file": FileBlobs(tmp_path / "blobs")})
            return
        yield MemoryBlobs() if request.param == "memory" else FileBlobs(tmp_path / "blobs")


async def test_a_blob_comes_back_whole(blobs: BlobStore) -> None:
    data = bytes(range(256)) * 5_000
    await blobs.put(REF, data, {"bytes": len(data)})
    assert await blobs.get(REF) == data
    await blobs.put(REF + "/empty", b"", {})
    assert await blobs.get(REF + "/empty") == b""


@pytest.mark.parametrize("size", [0, 10, 3 * 4 * 1024 * 1024 + 5])
async def test_a_file_is_put_piece_by_piece(blobs: BlobStore, size: int) -> None:
    data = (bytes(range(251)) * (size // 251 + 1))[:size]
    for _ in range(2):  # also over what is there
        await blobs.put_file(REF, BytesIO(data), {"bytes": size})
        assert await blobs.get(REF) == data
    assert await blobs.about(REF) == {"bytes": size}
    if size:
        assert await blobs.get(REF, size - 3, 10) == data[-3:]


async def test_a_part_of_a_blob(blobs: BlobStore) -> None:
    await blobs.put(REF, b"0123456789", {})
    assert await blobs.get(REF, 3) == b"3456789"
    assert await blobs.get(REF, 3, 4) == b"3456"
    assert await blobs.get(REF, 0, 0) == b""
    assert await blobs.get(REF, 8, 100) == b"89"
    assert await blobs.get(REF, 100) == b""


@pytest.mark.parametrize(("start", "length"), [(-1, None), (0, -1)])
async def test_a_negative_range_is_refused(blobs: BlobStore, start: int, length: int | None) -> None:
    await blobs.put(REF, b"0123456789", {})
    with pytest.raises(InvalidInput, match="negative"):
        await blobs.get(REF, start, length)


async def test_a_blob_put_again_is_replaced(blobs: BlobStore) -> None:
    await blobs.put(REF, b"first, and longer", {"n": 1})
    await blobs.put(REF, b"second", {"n": 2})
    assert await blobs.get(REF) == b"second"


async def test_what_is_not_there_is_named(blobs: BlobStore) -> None:
    for ask in (blobs.get, blobs.about):
        with pytest.raises(InvalidInput, match="noetl://execution/1"):
            await ask(REF)


async def test_what_was_told_of_a_blob_is_kept(blobs: BlobStore) -> None:
    await blobs.put(REF, b"first", {"n": 1})
    await blobs.put(REF, b"second", {"sha256": "é", "n": None})
    assert await blobs.about(REF) == {"sha256": "é", "n": None}
    await blobs.delete([REF])
    with pytest.raises(InvalidInput):
        await blobs.about(REF)


async def test_each_blob_goes_where_its_meta_says(tmp_path: Path) -> None:
    db, file = MemoryBlobs(), FileBlobs(tmp_path)
    shelves = BlobRouter({"db": db, "file": file})
    await shelves.put(REF, b"here", {"store": "file"})
    assert await file.get(REF) == await shelves.get(REF) == b"here"
    with pytest.raises(InvalidInput):
        await db.get(REF)
    with pytest.raises(InvalidInput, match="`db`, `file`"):
        await shelves.put(REF, b"x", {"store": "s3"})


async def test_deleting_takes_these_only_and_may_be_repeated(blobs: BlobStore) -> None:
    await blobs.put(REF, b"x", {})
    await blobs.put(REF + "/2", b"y", {})
    for _ in range(2):
        await blobs.delete([REF, REF + "/never"])
    with pytest.raises(InvalidInput):
        await blobs.get(REF)
    assert await blobs.get(REF + "/2") == b"y"


@pytest.mark.parametrize("ref", ["../../outside", "/etc/passwd", "a\x00b", "x" * 5_000, "ö/😀"])
async def test_no_reference_leads_out_of_the_store(blobs: BlobStore, tmp_path: Path, ref: str) -> None:
    await blobs.put(ref, b"inside", {})
    assert await blobs.get(ref) == b"inside"
    assert {path.name for path in tmp_path.iterdir()} <= {"blobs", "noetl.db", "noetl.db-wal", "noetl.db-shm"}


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailable, match="file"):
        await FileBlobs(tmp_path / "file").put(REF, b"x", {})


async def test_a_failed_write_leaves_no_half_file(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path)
    await blobs.put(REF, b"good", {})
    with pytest.raises(TypeError):
        await blobs.put(REF, object(), {})  # type: ignore[arg-type]  # not bytes: fails while it is written
    assert await blobs.get(REF) == b"good"
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


async def test_everything_that_is_stored_is_listed_with_what_was_told_of_it(blobs: BlobStore) -> None:
    put: dict[str, dict[str, Any]] = {f"noetl://x/{number}": {"n": number} for number in range(1_100)}
    put |= {ref: {"n": ref} for ref in ("a%00b", "a\x00b", "%25", "x" * 5_000, "x" * 4_999 + "y", "ö/😀")}
    await asyncio.gather(*(blobs.put(ref, b"1", meta) for ref, meta in put.items()))
    await blobs.delete(["noetl://x/7"])
    del put["noetl://x/7"]
    assert {ref: meta async for ref, meta in blobs.stored()} == put
    async for ref, _ in blobs.stored():
        await blobs.delete([ref])  # while it is listed
    assert [ref async for ref, _ in blobs.stored()] == []


async def test_tidying_leaves_whole_blobs_alone(blobs: BlobStore) -> None:
    await blobs.put(REF, b"whole", {"n": 1})
    assert await blobs.tidy(2**53) == 0
    assert await blobs.get(REF) == b"whole"
