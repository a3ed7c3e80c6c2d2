"""Lookups find keys and indexes, and nothing else."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Any

import pytest

from noetl.expr import Undefined
from noetl.expr.runtime.lookup import Group, lookup, path_reader, read_path


@pytest.mark.parametrize(
    ("base", "key", "value"),
    [
        ({"a": 1}, "a", 1),
        ({1: "x"}, 1, "x"),
        (MappingProxyType({"a": 1}), "a", 1),
        ([1, 2], -1, 2),
        ((1, 2), 0, 1),
        ("abc", 1, "b"),
        (Group(("g", [1])), "grouper", "g"),
        (Group(("g", [1])), "list", [1]),
        (Group(("g", [1])), 0, "g"),
        (date(2024, 5, 6), "month", 5),
        (datetime(2024, 5, 6, 7, tzinfo=UTC), "hour", 7),
        (timedelta(days=2), "days", 2),
    ],
)
def test_found(base: Any, key: Any, value: Any) -> None:
    assert lookup(base, key) == value


@pytest.mark.parametrize(
    ("base", "key"),
    [
        ({"a": 1}, "b"),
        ({"a": 1}, ["a"]),
        ({"a": 1}, "items"),
        ([1], 5),
        ([1], "append"),
        ([1], "0"),
        ("abc", "upper"),
        (5, "real"),
        (5.5, "is_integer"),
        (None, "x"),
        (True, 0),
        (date(2024, 5, 6), "hour"),
        (datetime(2024, 5, 6, tzinfo=UTC), "tzinfo"),
        (datetime(2024, 5, 6, tzinfo=UTC), "__class__"),
        (Group(("g", [1])), "count"),
        (object(), "__class__"),
        (str, "upper"),
        (len, "__call__"),
    ],
)
def test_not_there(base: Any, key: Any) -> None:
    assert isinstance(lookup(base, key), Undefined)


SCOPE: dict[str, Any] = {"a": {"b": {"c": {"d": 1}}, "l": [{"x": 2}]}, "t": "text"}


@pytest.mark.parametrize(
    "path", [("a",), ("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d"), ("a", "l", 0, "x"), ("t", 0)]
)
def test_the_fast_way_and_the_slow_way_agree(path: tuple[str | int, ...]) -> None:
    assert path_reader(path)(SCOPE) == read_path(SCOPE, path)
    assert not isinstance(path_reader(path)(SCOPE), Undefined)


@pytest.mark.parametrize(
    "path",
    [
        ("z",),
        ("a", "z"),
        ("a", "b", "z"),
        ("a", "b", "c", "z"),
        ("a", "b", "c", "d", "z"),
        ("t", "z"),
        ("a", "l", 3),
        ("a", 0),
        ("z", "y", "x"),
    ],
)
def test_both_ways_miss_alike(path: tuple[str | int, ...]) -> None:
    fast, slow = path_reader(path)(SCOPE), read_path(SCOPE, path)
    assert isinstance(fast, Undefined)
    assert isinstance(slow, Undefined)
    assert (fast.path, fast.found) == (slow.path, slow.found) == (path, slow.found)
