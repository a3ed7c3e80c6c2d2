"""Kind `resolve`: the value behind a reference, whole, in pages, by JSON path."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
import pytest_asyncio

from noetl.blobs import manifests, stored
from noetl.blobs.memory import MemoryBlobs
from noetl.model.manifest import manifest
from tests.tools.attempts import Attempts

pytestmark = pytest.mark.asyncio
REF = "noetl://execution/1/step/s/task/t/run/1/attempt/1"
VALUE = {"total": 3, "items": [{"id": 1}, {"id": 2}, {"id": 3}]}

PAGES = manifest(
    REF + "/pages", [{"ref": REF + "/list", "count": 5, "meta": None}, {"value": [5], "count": 1, "meta": {"bytes": 3}}]
)


@pytest_asyncio.fixture
async def attempts() -> AsyncIterator[Attempts]:
    blobs = MemoryBlobs()
    await stored.put(blobs, REF, b'{"total":3,"items":[{"id":1},{"id":2},{"id":3}]}', "db", stored.JSON, "none")
    await stored.put(blobs, REF + "/list", b"[0,1,2,3,4]", "db", stored.JSON, "gzip")
    made = Attempts(blobs=blobs)
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({"ref": REF}, VALUE),
        ({"ref": {"kind": "result_ref", "ref": REF}}, VALUE),
        ({"ref": [REF + "/list", {"kind": "result_ref", "ref": REF}]}, [[0, 1, 2, 3, 4], VALUE]),
        ({"ref": {"small": True}}, {"small": True}),
        ({"ref": REF + "/list", "offset": 1, "limit": 2}, [1, 2]),
        ({"ref": REF + "/list", "offset": 3}, [3, 4]),
        ({"ref": REF + "/list", "offset": 9, "limit": 9}, []),
        ({"ref": PAGES}, [0, 1, 2, 3, 4, 5]),
        ({"ref": PAGES, "offset": 3, "limit": 3}, [3, 4, 5]),
        ({"ref": PAGES, "offset": 5}, [5]),
        ({"ref": PAGES, "offset": 6, "limit": 2}, []),
        ({"ref": [PAGES]}, [[0, 1, 2, 3, 4, 5]]),
        (
            {"ref": REF, "select": [{"path": "$.total", "as": "n"}, {"path": "$.items[*].id", "as": "ids"}]},
            {"n": 3, "ids": [1, 2, 3]},
        ),
        ({"ref": REF, "select": [{"path": "$.none", "as": "none"}]}, {"none": None}),
    ],
)
async def test_the_value_behind_a_reference(attempts: Attempts, fields: dict[str, Any], result: Any) -> None:
    assert (await attempts.run("resolve", fields)).result == result


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"ref": "noetl://never"}, "reference", "is not there"),
        ({"ref": "hello"}, "reference", "not a reference"),
        ({"ref": REF, "limit": 1}, "schema", "a list"),
        ({"ref": REF, "select": [{"path": "$.[", "as": "x"}]}, "schema", "JSON path"),
    ],
)
async def test_what_cannot_be_resolved_is_told(
    attempts: Attempts, fields: dict[str, Any], kind: str, words: str
) -> None:
    error = (await attempts.run("resolve", fields)).error
    assert error.kind == kind
    assert words in error.message


async def test_a_reference_that_tells_another_hash_is_refused(attempts: Attempts) -> None:
    told = {"kind": "result_ref", "ref": REF, "meta": {"sha256": "0" * 64, "content_type": stored.JSON}}
    assert (await attempts.run("resolve", {"ref": told})).error.kind == "reference"


async def test_an_address_whose_time_is_over_is_told() -> None:
    blobs = MemoryBlobs()
    await stored.put(blobs, REF, b"1", "db", stored.JSON, "none", stored.terms("execution", 1_000, 1))
    attempts = Attempts(blobs=blobs)
    for kind in ("resolve", "artifact"):
        outcome = await attempts.run(kind, {"ref": REF})
        assert outcome.error is not None
        assert outcome.error.kind == "reference"
        assert "its `ttl` ended at 1970-01-01T00:00:01" in outcome.error.message
    await attempts.close()


async def test_an_artifact_in_pages_is_read_whole(attempts: Attempts) -> None:
    outcome = await attempts.run("artifact", {"ref": PAGES})
    assert outcome.result["data"] == [0, 1, 2, 3, 4, 5]
    assert outcome.result["bytes"] == 13


@pytest.mark.parametrize("kind", ["resolve", "artifact"])
async def test_pages_are_read_by_their_address_alone(attempts: Attempts, kind: str) -> None:
    await manifests.put_manifest(cast(MemoryBlobs, attempts.blobs), {**PAGES, "store": "db"}, 1)
    outcome = await attempts.run(kind, {"ref": PAGES["ref"]})
    assert (outcome.result if kind == "resolve" else outcome.result["data"]) == [0, 1, 2, 3, 4, 5]
