"""Results kept once: the compact form, and the views that readers see."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.model.refs import COMPACT, compact_pipeline, compacted, expanded, holds_ref, is_ref

REF = {"kind": "result_ref", "ref": "noetl://execution/1/step/s", "store": "db"}
BODY = {"items": [1, 2, 3]}


def sent(value: Any) -> Any:
    """Return what arrives of a value: the same data, other objects."""
    return msgspec.json.decode(msgspec.json.encode(value))


@pytest.mark.parametrize(
    ("results", "last", "seen"),
    [
        ({"a": {"x": 1}}, "a", {"x": 1, "a": {"x": 1}, "results": {"a": {"x": 1}}}),
        ({"a": 1, "b": {"y": 2}}, "b", {"a": 1, "b": {"y": 2}, "y": 2, "results": {"a": 1, "b": {"y": 2}}}),
        ({"a": 1, "b": [2]}, "b", {"a": 1, "b": [2], "data": [2], "results": {"a": 1, "b": [2]}}),
        ({"a": 1, "b": {"a": "own"}}, "b", {"a": "own", "b": {"a": "own"}, "results": {"a": 1, "b": {"a": "own"}}}),
        ({"results": 1, "b": {"y": 2}}, "b", {"results": {"results": 1, "b": {"y": 2}}, "b": {"y": 2}, "y": 2}),
        ({"a": 1, "b": REF}, "b", {"a": 1, "b": REF, "results": {"a": 1, "b": REF}, **REF}),
    ],
)
def test_a_pipeline_is_seen_by_keys_labels_and_results(results: Any, last: str, seen: Any) -> None:
    assert expanded(sent(compact_pipeline(results, last))) == seen


def test_the_views_share_their_values() -> None:
    kept = sent(compact_pipeline({str(n): {"text": "x" * 60_000} for n in range(20)}, "19"))
    found = expanded(kept)
    assert all(found[label] is kept["results"][label] is found["results"][label] for label in kept["results"])
    assert found["text"] is kept["results"]["19"]["text"]
    assert len(msgspec.json.encode(kept)) < 21 * 60_100


def test_a_value_that_no_label_has_any_more_is_kept_beside() -> None:
    assert expanded(compact_pipeline({"a": 1}, None, {"y": 2})) == {"a": 1, "results": {"a": 1}, "y": 2}
    assert expanded(compact_pipeline({"a": 1}, None)) == {"a": 1, "results": {"a": 1}, "data": None}
    assert holds_ref(compact_pipeline({"a": 1}, None, REF))


def test_a_value_under_two_names_is_kept_once() -> None:
    given = {"status": 200, "data": BODY, "body": BODY}
    kept = compacted(given)
    assert kept == {"kind": COMPACT, "value": {"status": 200, "data": BODY}, "also": {"body": "data"}}
    found = expanded(sent(kept))
    assert found == given
    assert found["body"] is found["data"]


def test_equal_values_that_are_not_the_same_stay() -> None:
    given = {"a": [1], "b": [1], "c": "", "d": "", "e": None, "f": None}
    assert compacted(given) is given


def test_results_within_results() -> None:
    child = compact_pipeline({"get": compacted({"data": BODY, "body": BODY})}, "get")
    found = expanded(sent(compact_pipeline({"call": child, "b": 1}, "b")))
    assert found["call"]["get"]["body"] == found["results"]["call"]["results"]["get"]["data"] == BODY
    assert found["call"]["body"] is found["call"]["data"]


def test_items_of_a_loop_are_seen_whole() -> None:
    loop = {"results": [compact_pipeline({"a": 1, "b": 2}, "b"), None], "stats": {"total": 2}}
    assert expanded(loop)["results"] == [{"a": 1, "b": 2, "data": 2, "results": {"a": 1, "b": 2}}, None]
    plain = {"results": [{"a": 1}], "stats": {}}
    assert expanded(plain) is plain


def test_references_are_found_in_compact_results() -> None:
    kept = compact_pipeline({"a": REF, "b": 1}, "b")
    assert holds_ref(kept)
    assert not is_ref(kept)
    assert is_ref(expanded(compact_pipeline({"a": 1, "b": REF}, "b")))


@pytest.mark.parametrize(
    "odd",
    [
        {"kind": COMPACT},
        {"kind": COMPACT, "results": {"a": 1}, "last": "a"},
        {"kind": COMPACT, "value": {"x": 1}, "also": {"y": "x"}},
        {"results": [{"kind": COMPACT, "results": {}, "last": "a"}]},
    ],
)
def test_data_that_looks_like_a_compact_result_comes_back_as_it_is(odd: Any) -> None:
    assert expanded(sent(compacted(odd))) == odd


_DATA = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(max_size=3),
    lambda some: (
        st.lists(some, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "results", "last", "value", "also", "a"]), some, max_size=4)
    ),
)


@given(_DATA)
def test_every_result_comes_back_as_it_is(value: Any) -> None:
    assert expanded(sent(compacted(value))) == value
