"""Kind `artifact`: put and get by URI, in every store, and refusals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from noetl.blobs.database import DatabaseBlobs
from noetl.blobs.files import FileBlobs
from noetl.blobs.shelves import BlobRouter
from noetl.stores.sqlite.database import Database
from tests.tools.attempts import Attempts

pytestmark = pytest.mark.asyncio
REF = "noetl://reports/2024-05-01"


@pytest_asyncio.fixture
async def attempts(tmp_path: Path) -> AsyncIterator[Attempts]:
    database = Database(tmp_path / "noetl.db")
    shelves = BlobRouter({"db": DatabaseBlobs(database), "file": FileBlobs(tmp_path / "blobs")})
    made = Attempts(folder=str(tmp_path), blobs=shelves)
    yield made
    await made.close()
    await database.close()


@pytest.mark.parametrize("store", [None, "db", "file", {"kind": "file", "compression": "gzip"}])
@pytest.mark.parametrize("data", [{"rows": [1, 2]}, "a text, é", [None], 7])
async def test_what_was_put_comes_back(attempts: Attempts, store: Any, data: Any) -> None:
    put = await attempts.run("artifact", {"action": "put", "ref": REF, "data": data, "store": store})
    got = await attempts.run("artifact", {"action": "get", "ref": put.result["ref"]})
    assert got.result["data"] == data
    assert {name: got.result[name] for name in ("ref", "store", "bytes", "sha256", "content_type")} == put.result
    assert put.result["store"] == (store["kind"] if isinstance(store, dict) else store or "db")


@pytest.mark.parametrize("store", ["kv", {"kind": "kv"}])
async def test_a_key_value_store_is_the_database_without_nats(attempts: Attempts, store: Any) -> None:
    put = await attempts.run("artifact", {"action": "put", "ref": REF, "data": [1], "store": store})
    assert put.result["store"] == "db"
    assert (await attempts.run("artifact", {"ref": REF})).result["data"] == [1]


async def test_what_to_read_may_be_given_as_an_input(attempts: Attempts) -> None:
    put = await attempts.run("artifact", {"action": "put", "ref": REF, "data": {"n": 1}})
    for given in (REF, {"kind": "result_ref", "ref": REF, "store": "db"}):
        got = await attempts.run("artifact", {"action": "get"}, input={"result_ref": given})
        assert (got.result["data"], got.result["sha256"]) == ({"n": 1}, put.result["sha256"])
    assert (await attempts.run("artifact", {"result_ref": REF})).result["data"] == {"n": 1}
    other = await attempts.run("artifact", {"ref": "noetl://other"}, input={"result_ref": REF})
    assert other.error.kind == "reference"
    assert "`ref` is missing" in (await attempts.run("artifact", {"action": "get"})).error.message


async def test_without_an_address_it_gets_one_of_its_own(attempts: Attempts) -> None:
    first = await attempts.run("artifact", {"action": "put", "data": {"n": 1}}, execution_id="7")
    second = await attempts.run("artifact", {"action": "put", "data": {"n": 2}}, execution_id="8")
    assert first.result["ref"] != second.result["ref"]
    assert (await attempts.run("artifact", {"ref": first.result["ref"]})).result["data"] == {"n": 1}


async def test_a_content_type_of_its_own_is_kept(attempts: Attempts) -> None:
    await attempts.run("artifact", {"action": "put", "ref": REF, "data": "a,b\n1,2\n", "content_type": "text/csv"})
    got = await attempts.run("artifact", {"ref": REF})
    assert (got.result["content_type"], got.result["data"]) == ("text/csv", "a,b\n1,2\n")


async def test_files_are_addresses_too(attempts: Attempts, tmp_path: Path) -> None:
    await attempts.run("artifact", {"action": "put", "ref": "file://out/r.json", "data": {"a": 1}})
    assert (tmp_path / "out/r.json").read_text() == '{"a":1}'
    assert (await attempts.run("artifact", {"ref": "file://out/r.json"})).result["data"] == {"a": 1}
    assert (await attempts.run("artifact", {"ref": "file://out/none.json"})).error.kind == "reference"


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"ref": "noetl://never"}, "reference", "is not there"),
        ({"ref": "s3://bucket/key"}, "client_error", "is not supported"),
        ({"action": "put", "ref": "noetl://execution/1/step/s", "data": 1}, "client_error", "cannot be overwritten"),
        ({"action": "put", "ref": REF, "data": 1, "store": "s3"}, "client_error", "`db`, `file`"),
        ({"action": "put", "ref": REF, "data": 1, "store": {"compression": "lz4"}}, "client_error", "lz4"),
    ],
)
async def test_what_cannot_be_done_is_told(attempts: Attempts, fields: dict[str, Any], kind: str, words: str) -> None:
    error = (await attempts.run("artifact", fields)).error
    assert error.kind == kind
    assert words in error.message


async def test_a_damaged_file_is_never_given_out(attempts: Attempts, tmp_path: Path) -> None:
    await attempts.run("artifact", {"action": "put", "ref": REF, "data": {"sum": 12345}, "store": "file"})
    (blob,) = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file() and path.suffix != ".json"]
    blob.write_bytes(blob.read_bytes().replace(b"12345", b"99999"))
    error = (await attempts.run("artifact", {"ref": REF})).error
    assert error.kind == "reference"
    assert "damaged" in error.message


FILES = ["rows.jsonl", "rows.json", "rows.csv", "rows.parquet"]


async def rows(attempts: Attempts, file: str) -> list[dict[str, Any]]:
    out = {"kind": "file", "path": "seen.json"}
    moved = {"source": {"kind": "file", "path": file}, "target": out, "mode": "overwrite"}
    assert (await attempts.run("transfer", moved)).outcome.status == "ok"
    got = await attempts.run("artifact", {"ref": "file://seen.json"})
    found: list[dict[str, Any]] = got.result["data"]
    return found


@pytest.mark.parametrize("file", FILES)
async def test_rows_meet_those_of_a_file_as_the_mode_says(attempts: Attempts, file: str) -> None:
    async def put(mode: str, data: Any, **more: Any) -> None:
        tried = await attempts.run(
            "artifact", {"action": "put", "ref": f"file://{file}", "mode": mode, "data": data, **more}
        )
        assert tried.outcome.status == "ok", tried.error

    first = [{"id": 1, "name": "a"}, {"id": 2, "name": "it's; DROP"}]
    await put("insert", first)
    for _ in range(2):  # what is run again changes nothing
        await put("upsert", [{"id": 2, "name": "B"}, {"id": 3, "name": "c"}], key="id")
    assert await rows(attempts, file) == [{"id": 1, "name": "a"}, {"id": 2, "name": "B"}, {"id": 3, "name": "c"}]
    for _ in range(2):
        await put("insert", [{"id": 3, "name": "other"}, {"id": 4, "name": "d"}], key=["id"])
    assert [row["name"] for row in await rows(attempts, file)] == ["a", "B", "c", "d"]
    await put("append", {"id": 4, "name": "d"})
    assert [row["id"] for row in await rows(attempts, file)] == [1, 2, 3, 4, 4]
    await put("overwrite", {"id": 9, "name": "z"})
    assert await rows(attempts, file) == [{"id": 9, "name": "z"}]
    await put("replace", {"id": 8, "name": "y"})
    assert await rows(attempts, file) == [{"id": 8, "name": "y"}]


async def test_an_upsert_without_a_key_goes_by_the_idempotency_key(attempts: Attempts) -> None:
    fields = {"action": "put", "ref": "file://rows.jsonl", "mode": "upsert", "data": {"n": 1}}
    for _ in range(2):
        await attempts.run("artifact", fields, execution_id="7")
    await attempts.run("artifact", fields, execution_id="8")
    found = await rows(attempts, "rows.jsonl")
    assert [row["n"] for row in found] == [1, 1]
    assert len({row["idempotency_key"] for row in found}) == 2


async def test_what_is_put_knows_its_idempotency_key(attempts: Attempts) -> None:
    put = await attempts.run("artifact", {"action": "put", "ref": REF, "data": 1})
    assert attempts.blobs is not None
    assert ":" in (await attempts.blobs.about(put.result["ref"]))["idempotency_key"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ref": REF, "mode": "append", "data": {"a": 1}}, "requires a file"),
        ({"ref": "file://a.jsonl", "mode": "append", "data": "text"}, "a row or a list of rows"),
        ({"ref": "file://a.jsonl", "mode": "append", "data": [1]}, "a row or a list of rows"),
        (
            {"ref": "file://a.jsonl", "mode": "upsert", "key": "id", "data": {"a": 1}},
            "no value for the key column `id`",
        ),
        ({"ref": "file://a.bin", "mode": "append", "data": {"a": 1}}, "cannot derive the format"),
    ],
)
async def test_rows_that_cannot_be_written_are_told_of(attempts: Attempts, fields: dict[str, Any], words: str) -> None:
    error = (await attempts.run("artifact", {"action": "put", **fields})).error
    assert words in error.message
    assert not error.retryable
