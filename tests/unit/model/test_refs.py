"""References: their address, and what is visible without loading."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.model.refs import address, holds_ref, is_ref, visible


def ref(name: str, **extracted: Any) -> dict[str, Any]:
    return {"kind": "result_ref", "ref": f"noetl://{name}", "store": "db", "meta": {}, "extracted": extracted}


def test_an_address_tells_runs_items_visits_and_deliveries_apart() -> None:
    base = address("7", "load", "get", 1, 1)
    assert base == "noetl://execution/7/step/load/task/get/run/1/attempt/1"
    others = {
        address("7", "load", "get", 1, 2),
        address("7", "load", "get", 2, 1),
        address("7", "load", "get", 1, 1, index=2),
        address("7", "load", "get", 1, 1, visit=2),
        address("7", "load", "get", 1, 1, delivery=2),
        address("7", "load", "call/get", 1, 1),
        base,
    }
    assert len(others) == 7


def test_no_name_can_pass_for_another_part_of_the_address() -> None:
    assert address("7", "a/task/b", "c", 1, 1) != address("7", "a", "b/task/c", 1, 1)


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ({"rows": [1]}, {"rows": [1]}),
        (None, None),
        (ref("a", total=3), {"_ref": "noetl://a", "_store": "db", "total": 3}),
        (
            {"results": {"a": ref("a"), "b": {"n": 1}}, "a": ref("a"), "b": {"n": 1}, "n": 1},
            {
                "results": {"a": {"_ref": "noetl://a", "_store": "db"}, "b": {"n": 1}},
                "a": {"_ref": "noetl://a", "_store": "db"},
                "b": {"n": 1},
                "n": 1,
            },
        ),
        (
            {"results": {"store": {"n": 1}, "b": ref("b", x=2)}, **ref("b", x=2)},
            {
                "results": {"store": {"n": 1}, "b": {"_ref": "noetl://b", "_store": "db", "x": 2}},
                "store": {"n": 1},
                "b": {"_ref": "noetl://b", "_store": "db", "x": 2},
                "_ref": "noetl://b",
                "_store": "db",
                "x": 2,
            },
        ),
    ],
)
def test_what_is_seen_of_a_result(result: Any, shown: Any) -> None:
    assert visible(result) == shown


def test_what_only_looks_like_a_reference_is_data() -> None:
    for data in ({"kind": "result_ref"}, {"kind": "result_ref", "ref": "elsewhere"}, {"ref": "noetl://a"}, "noetl://a"):
        assert not is_ref(data)
        assert visible(data) == data


def test_references_are_found_where_results_hold_them() -> None:
    assert holds_ref(ref("a"))
    assert holds_ref({"results": {"a": ref("a")}})
    assert holds_ref({"results": [None, {"results": {"a": ref("a")}}], "stats": {}})
    assert not holds_ref({"results": [1, {"rows": []}], "stats": {}})
