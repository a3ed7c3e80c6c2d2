"""JSON in pieces: the same values as at once, and other tasks run in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.blobs import pieces

pytestmark = pytest.mark.asyncio
ROWS = [{"id": number, "text": "é" * 20, "of": {"a": [number, None, 1.5]}} for number in range(60_000)]
plain_data: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(value=plain_data, indent=st.sampled_from([None, 1]))
async def test_every_value_is_read_as_in_one_go(value: Any, indent: int | None) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pieces, "_PIECE", 8)  # so that small values are taken apart too
        assert pieces.in_pieces(data, json.loads) == json.loads(data)
    written = msgspec.json.encode(value)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pieces, "_PIECE", 8)
        assert pieces.in_pieces(written) == msgspec.json.decode(written)


@pytest.mark.parametrize(
    "value", [ROWS, {"rows": ROWS, "n": 1}, [ROWS, 1, "x" * 600_000, ROWS], "x" * 3_000_000, {"a": {"b": [ROWS]}}]
)
async def test_what_is_large_comes_back(value: Any) -> None:
    data = await pieces.encoded(value)
    assert data == msgspec.json.encode(value)
    assert await pieces.decoded(data) == value
    assert await pieces.decoded(data, json.loads) == value


async def test_numbers_of_any_size_are_what_they_were() -> None:
    huge = [10**30 + number for number in range(60_000)]
    assert await pieces.decoded(json.dumps(huge).encode(), json.loads) == huge


@pytest.mark.parametrize(
    "text", [b"[" + b"1," * 600_000, b'{"a": ' + b"[1]" * 600_000 + b"}", b"[" * 700_000 + b"]" * 700_000]
)
async def test_what_is_no_json_is_refused_by_the_reader(text: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, RecursionError)):
        await pieces.decoded(text)
    with pytest.raises((ValueError, RecursionError)):
        await pieces.decoded(text, json.loads)


async def test_the_event_loop_runs_while_much_is_read() -> None:
    """Counts turns of the event loop: decoding at once allows none."""
    data = msgspec.json.encode({"rows": ROWS * 4})
    turns = 0

    async def turning() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(turning())
    await asyncio.sleep(0)
    read_by_pieces: list[int] = []

    def reading(part: bytes) -> Any:
        read_by_pieces.append(len(part))
        return msgspec.json.decode(part)

    await pieces.decoded(data, reading)
    beside.cancel()
    assert turns > 0
    assert max(read_by_pieces) < len(data) / 10


async def test_the_items_of_a_large_list_are_not_listed_to_see_that_it_is_large() -> None:
    class Unlisted(list[None]):
        def __iter__(self) -> Iterator[None]:
            raise AssertionError("listed")

    assert not pieces._is_light({"rows": Unlisted([None] * 300_000)})
    assert pieces._is_light({"rows": [None] * 300})
