"""Frames of a cursor loop: how rows are grouped, and their keys."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.state.frames import Claims, frame_key, frames, row_key


@pytest.mark.parametrize(
    ("row", "columns", "names", "key"),
    [
        ({"id": 7, "n": 1}, (), ("id",), "7"),
        ({"id": 7, "n": 1}, (), ("n", "id"), "1/7"),
        ({"b": 1, "a": "é"}, (), (), '{"a":"é","b":1}'),
        ([7, "x"], ("id", "n"), ("id",), "7"),
        ([7, "x"], ("id", "n"), ("n", "id"), "x/7"),
        ([7, "x"], (), ("1",), "x"),
        ([7, "x"], (), ("id",), "None"),
        ([7, "x"], ("id", "n"), (), '[7,"x"]'),
        (7, (), ("id",), "7"),
        (None, (), (), "null"),
    ],
)
def test_the_key_of_a_row(row: Any, columns: tuple[str, ...], names: tuple[str, ...], key: str) -> None:
    assert row_key(row, columns, names) == key


def test_the_key_of_a_long_row_is_a_digest_of_it() -> None:
    one, other = ({"text": "x" * 500, "n": n} for n in (1, 2))
    assert row_key(one).startswith("row:")
    assert row_key(one) == row_key({"n": 1, "text": "x" * 500}) != row_key(other)


def test_no_frame_is_longer_than_it_may_be() -> None:
    rows = [(n, str(n)) for n in range(7)]
    made = list(frames(rows, {"process": "frame", "rows": 3}))
    assert made == [([0, 1, 2], "0,1,2"), ([3, 4, 5], "3,4,5"), ([6], "6")]
    assert list(frames([], {"rows": 3})) == []


def test_the_key_of_a_frame_holds_those_of_its_rows() -> None:
    assert frame_key(["a", "b"]) == "a,b"
    assert frame_key([None, None]) is None
    many = [str(n) * 9 for n in range(100)]
    assert (frame_key(many) or "").startswith("frame:")
    assert frame_key(many) != frame_key(many[:-1])


def test_claims_of_rows_are_items_at_once() -> None:
    claims = Claims()
    assert list(claims.items("loop.started", {"frame": {"process": "row", "rows": 2}})) == []
    assert list(claims.items("loop.claim.recorded", {"chunk": "c1", "rows": [1, 2], "keys": ["1", "2"]})) == [
        (1, "1"),
        (2, "2"),
    ]
    assert list(claims.items("loop.claim.done", {"chunk": "c1"})) == []


def test_claims_of_frames_are_items_when_the_claim_is_done() -> None:
    claims = Claims()
    list(claims.items("loop.started", {"frame": {"process": "frame", "rows": 2}}))
    for n in (1, 2, 3):
        assert list(claims.items("loop.claim.recorded", {"chunk": "c1", "rows": [n], "keys": [str(n)]})) == []
    assert list(claims.items("loop.claim.done", {"chunk": "c1"})) == [([1, 2], "1,2"), ([3], "3")]
    assert list(claims.items("loop.claim.done", {"chunk": "c2"})) == []
