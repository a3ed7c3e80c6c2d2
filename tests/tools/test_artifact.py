"""The kind `artifact`: put and get by address, in every store that is here, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from noetl.blobs.database import DatabaseBlobs
from noetl.blobs.files import FileBlobs
from noetl.blobs.shelves import ShelvedBlobs
from noetl.stores.database import Database
from tests.tools.attempts import Attempts

pytestmark = pytest.mark.asyncio
REF = "noetl://reports/2024-05-01"


@pytest_asyncio.fixture
async def attempts(tmp_path: Path) -> AsyncIterator[Attempts]:
    database = Database(tmp_path / "noetl.db")
    shelves = ShelvedBlobs({"db": DatabaseBlobs(database), "file": FileBlobs(tmp_path / "blobs")})
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
        ({"ref": "s3://bucket/key"}, "client_error", "cannot be reached here"),
        ({"action": "put", "ref": "noetl://execution/1/step/s", "data": 1}, "client_error", "not written over"),
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
