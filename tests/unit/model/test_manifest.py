"""Results in parts: how lists are cut, and how parts become one value again."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import pytest

from noetl.model.errors import BadReference
from noetl.model.manifest import combined, cut, is_list, manifest, picked, ranged, within


def made(strategy: str, *counts: int, merge_path: str | None = None) -> dict[str, Any]:
    parts = [{"ref": f"noetl://p{at}", "count": count, "meta": {"bytes": 10}} for at, count in enumerate(counts)]
    return manifest("noetl://all", parts, strategy, merge_path)


def test_a_list_is_cut_into_parts_of_about_a_size() -> None:
    items = [{"n": number, "text": "x" * 30} for number in range(100)]
    parts = list(cut(items, 500))
    assert len(parts) > 5
    assert all(len(data) < 700 for _, data in parts)
    assert sum(count for count, _ in parts) == 100
    assert [item for _, data in parts for item in msgspec.json.decode(data)] == items
    assert list(cut([])) == []
    assert [count for count, _ in cut(["x" * 1000, "y"], 500)] == [1, 1]  # one that is too large is a part of its own


@pytest.mark.parametrize(
    ("strategy", "path", "values", "expected"),
    [
        ("append", None, [1, [2], {"a": 3}], [1, [2], {"a": 3}]),
        ("append", "a", [{"a": 1}, {"a": 2}], [1, 2]),
        ("append", None, [], []),
        ("concat", None, [[1], [2, 3], []], [1, 2, 3]),
        ("concat", "data.items", [{"data": {"items": [1]}}, {"data": {"items": [2]}}], [1, 2]),
        ("concat", "$.items", [{"items": [1]}], [1]),
        ("merge", None, [{"a": {"x": 1}, "b": [1]}, {"a": {"y": 2}, "b": [2]}], {"a": {"x": 1, "y": 2}, "b": [2]}),
        ("merge", "m", [{"m": {"a": 1}}, {"m": {"b": 2}}], {"a": 1, "b": 2}),
        ("replace", None, [1, 2], 2),
        ("replace", "a", [{"a": 1}, {"a": 2}], 2),
        ("replace", None, [], None),
    ],
)
def test_parts_become_one(strategy: str, path: str | None, values: list[Any], expected: Any) -> None:
    assert combined(made(strategy, merge_path=path), values) == expected


@pytest.mark.parametrize(("strategy", "value"), [("concat", {"a": 1}), ("merge", [1]), ("concat", "text")])
def test_a_part_that_does_not_fit_is_named(strategy: str, value: Any) -> None:
    first: Any = [] if strategy == "concat" else {}
    with pytest.raises(BadReference, match=f"by `{strategy}`: part 1 is not a"):
        combined(made(strategy), [first, value])


def test_a_path_that_leads_nowhere_is_named() -> None:
    with pytest.raises(BadReference, match=r"nothing at `merge_path: a\.b`"):
        picked({"a": {"c": 1}}, "a.b")


def test_merging_changes_no_part() -> None:
    first = {"a": {"x": 1}}
    combined(made("merge"), [first, {"a": {"y": 2}}])
    assert first == {"a": {"x": 1}}


def test_totals() -> None:
    assert [made(strategy, 3, 4)["total"] for strategy in ("append", "concat", "merge", "replace")] == [2, 7, 1, 1]
    assert made("concat", 3, 4)["meta"]["bytes"] == 20


def test_only_the_parts_that_hold_a_range_are_named() -> None:
    found = within(made("concat", 3, 3, 3), 4, 3)
    assert ([part["ref"] for part in found["parts"]], found["first"]) == (["noetl://p1", "noetl://p2"], 3)
    found = within(made("append", 3, 3, 3), 1, 1)
    assert ([part["ref"] for part in found["parts"]], found["first"]) == (["noetl://p1"], 1)


def test_what_can_be_read_by_range() -> None:
    assert is_list(made("concat"))
    assert is_list(made("append", merge_path="a"))
    assert not is_list(made("concat", merge_path="a"))
    assert not is_list(made("merge"))


LISTS_OF_PARTS = [
    ("concat", None, [[1, 2, 3], [], [4], [5, 6]]),
    ("concat", "rows", [{"rows": [1, 2]}, {"rows": [3]}]),
    ("append", None, [1, [2, 3], {"a": 4}]),
    ("concat", None, []),
]


@pytest.mark.parametrize(("strategy", "path", "values"), LISTS_OF_PARTS)
def test_a_range_is_that_of_the_whole(strategy: str, path: str | None, values: list[Any]) -> None:
    of = {"ref": "r", "strategy": strategy, "merge_path": path}
    whole = combined(of, values)
    for offset, count in product(range(8), range(8)):
        assert ranged(of, values, offset, count) == whole[offset : offset + count]


def test_a_part_that_is_no_list_is_named_in_a_range_too() -> None:
    with pytest.raises(BadReference, match="part 0 is not a list"):
        ranged({"ref": "r", "strategy": "concat"}, [1], 0, 1)
