"""Values as blobs: read exactly as stored or refused; parts of them by JSONPath."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.blobs import stored
from noetl.blobs.memory import MemoryBlobs
from noetl.blobs.parts import selected
from noetl.model.errors import BadReference, InvalidInput, StoreUnavailable

REF = "noetl://a"
plain_data: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.asyncio
@pytest.mark.parametrize("packing", stored.PACKINGS)
@given(value=plain_data)
async def test_every_value_comes_back(packing: str, value: Any) -> None:
    blobs = MemoryBlobs()
    meta = await stored.put(blobs, REF, msgspec.json.encode(value), "db", stored.JSON, packing)
    assert await stored.value(blobs, REF) == value
    assert await stored.value(blobs, REF, meta) == value


@pytest.mark.asyncio
@pytest.mark.parametrize("packing", stored.PACKINGS)
@given(st.binary(max_size=40), st.data())
async def test_no_changed_byte_goes_unnoticed(packing: str, data: bytes, drawn: st.DataObject) -> None:
    blobs = MemoryBlobs()
    meta = await stored.put(blobs, REF, data, "db", "text/plain", packing)
    packed = await blobs.get(REF)
    changed = drawn.draw(st.binary(max_size=60).filter(lambda other: other != packed))
    await blobs.put(REF, changed, meta)
    try:
        found, _ = await stored.get(blobs, REF)
    except BadReference:
        return
    assert found == data  # packed in another way, and still the same


@pytest.mark.asyncio
async def test_what_was_large_comes_back_too() -> None:
    blobs, data = MemoryBlobs(), bytes(range(256)) * 10_000
    for packing in stored.PACKINGS:
        await stored.put(blobs, REF, data, "db", "application/octet-stream", packing)
        assert (await stored.get(blobs, REF))[0] == data


class LockedBlobs(MemoryBlobs):
    """A store that cannot be reached."""

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes:
        raise StoreUnavailable("locked")


@pytest.mark.asyncio
async def test_what_cannot_be_had_is_told() -> None:
    with pytest.raises(BadReference, match="noetl://a is not there"):
        await stored.value(MemoryBlobs(), REF)
    with pytest.raises(BadReference, match="cannot be read now: locked"):
        await stored.value(LockedBlobs(), REF)
    blobs = MemoryBlobs()
    await stored.put(blobs, REF, b"\xff", "db", "text/plain", "none")
    with pytest.raises(BadReference, match="text/plain"):
        await stored.value(blobs, REF)


def test_parts_by_path() -> None:
    value = {"a": {"b": [1, 2]}, "c": None}
    parts = [{"path": "$.a.b[1]", "as": "one"}, {"path": "$.a.b[*]", "as": "all"}, {"path": "$.no", "as": "none"}]
    assert selected(value, parts) == {"one": 2, "all": [1, 2], "none": None}
    for bad in ({"path": "$["}, {"path": "$.["}, "text"):
        with pytest.raises(InvalidInput):
            selected(value, [bad if isinstance(bad, str) else {**bad, "as": "x"}])
