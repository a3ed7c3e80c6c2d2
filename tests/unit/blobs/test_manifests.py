"""Manifests over a blob store: whole values, ranges, expiry and damage."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from noetl.blobs import manifests, stored
from noetl.blobs.memory import MemoryBlobs
from noetl.model.errors import BadReference
from noetl.model.manifest import manifest

pytestmark = pytest.mark.asyncio
REF = "noetl://execution/1/step/a/task/t/run/1/attempt/1"


class Counting(MemoryBlobs):
    reads = 0

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes:
        self.reads += 1
        return await super().get(ref, start, length)


async def pages(blobs: MemoryBlobs, strategy: str, *values: Any, **more: Any) -> dict[str, Any]:
    """Put some pages away; the last one stays inline."""
    parts: list[dict[str, Any]] = []
    for number, value in enumerate(values[:-1]):
        meta = await stored.put(blobs, f"{REF}.{number}", msgspec.json.encode(value), "db", stored.JSON, "gzip")
        parts.append({"ref": f"{REF}.{number}", "count": len(value), "meta": meta})
    parts.append({"value": values[-1], "count": len(values[-1]), "meta": {"bytes": 1}})
    return manifest(f"{REF}/pages", parts, strategy, **more)


@pytest.mark.parametrize(
    ("strategy", "values", "expected"),
    [
        ("append", [[1], [2], [3]], [[1], [2], [3]]),
        ("concat", [[1], [2], [3]], [1, 2, 3]),
        ("merge", [{"a": 1}, {"b": 2}, {"a": 3}], {"a": 3, "b": 2}),
        ("replace", [[1], [2], [3]], [3]),
    ],
)
async def test_the_whole_of_stored_and_inline_pages(strategy: str, values: list[Any], expected: Any) -> None:
    blobs = MemoryBlobs()
    assert await manifests.value(blobs, await pages(blobs, strategy, *values), 0) == expected


async def test_a_range_reads_the_parts_that_hold_it() -> None:
    blobs = Counting()
    made = await pages(blobs, "concat", [0, 1, 2], [3, 4, 5], [6, 7])
    assert await manifests.items(blobs, made, 4, 3, 0) == [4, 5, 6]
    assert blobs.reads == 1
    recent: dict[str, Any] = {}
    for at in range(3):
        assert await manifests.items(blobs, made, at, 1, 0, recent) == [at]
    assert blobs.reads == 2
    with pytest.raises(BadReference, match="ends before item 8"):
        await manifests.items(blobs, made, 7, 2, 0)


async def test_a_list_is_put_away_in_parts() -> None:
    blobs = MemoryBlobs()
    listed = [{"n": number, "text": "x" * 1000} for number in range(1000)]
    made = await manifests.put_list(blobs, REF, listed, 5)
    assert len(made["parts"]) > 2
    assert await manifests.value(blobs, made, 0) == listed
    about = await blobs.about(made["parts"][0]["ref"])
    assert (about["scope"], about["expires_at"], about["stored_at"]) == ("execution", None, 5)


async def test_what_has_expired_is_not_read() -> None:
    blobs = MemoryBlobs()
    made = await pages(blobs, "concat", [1], [2], expires_at=1_000)
    assert await manifests.value(blobs, made, 999) == [1, 2]
    for ask in (manifests.value(blobs, made, 1_000), manifests.items(blobs, made, 0, 1, 1_000)):
        with pytest.raises(BadReference, match="has expired: its `ttl` ended at 1970-01-01T00:00:01"):
            await ask


async def test_a_damaged_part_is_told() -> None:
    blobs = MemoryBlobs()
    made = await pages(blobs, "concat", [1], [2])
    await blobs.put(f"{REF}.0", b"[9]", {})
    with pytest.raises(BadReference, match="damaged"):
        await manifests.value(blobs, made, 0)
