"""What a task expects and returns."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.dsl.tree.playbook import Value
from noetl.engine.tasks.assertions import Assertions, assertions
from noetl.model.outcome import Outcome, failed, ok


@pytest.mark.parametrize(
    ("path", "inputs", "names", "is_given"),
    [
        ("city", {"city": "Oslo"}, {}, True),
        ("city", {"city": None}, {}, False),
        ("city", {"city": ""}, {}, True),
        ("city", {"city": 0}, {}, True),
        ("city", {}, {"workload": {"city": "Oslo"}}, False),
        ("place.city", {"place": {"city": "Oslo"}}, {}, True),
        ("place.city", {"place": {}}, {}, False),
        ("place.city", {"place": "Oslo"}, {}, False),
        ("place.city", {"place.city": "Oslo"}, {}, True),
        ("cities.1", {"cities": ["Oslo", "Bergen"]}, {}, True),
        ("cities.2", {"cities": ["Oslo", "Bergen"]}, {}, False),
        ("workload.city", {}, {"workload": {"city": "Oslo"}}, True),
        ("ctx.city", {}, {"ctx": {}}, False),
        ("other.city", {}, {"other": {"city": "Oslo"}}, False),
    ],
)
def test_an_input_is_given(path: str, inputs: dict[str, Any], names: dict[str, Any], is_given: bool) -> None:
    refused = Assertions(expects=(path,)).refused("t", [inputs], names)
    assert (refused is None) is is_given
    if refused is not None:
        assert refused.error is not None
        assert (refused.error.kind, refused.error.code) == ("schema", "ASSERT")
        assert f"`{path}`" in refused.error.message


def test_fields_of_the_tool_are_inputs_too() -> None:
    given = [{"city": "Oslo"}, {"url": "http://example.com"}]
    assert Assertions(expects=("city", "url")).refused("t", given, {}) is None


@pytest.mark.parametrize(
    ("path", "result", "is_there"),
    [
        ("n", {"n": 1}, True),
        ("n", {"n": None}, True),
        ("n", {}, False),
        ("n", None, False),
        ("n", 7, False),
        ("n", {"data": {"n": 1}}, True),
        ("data.n", {"n": 1}, True),
        ("data.n", {"data": {"n": 1}}, True),
        ("$.n", {"n": 1}, True),
        ("rows.0.id", {"rows": [{"id": 1}]}, True),
        ("rows.0.id", {"rows": []}, False),
    ],
)
def test_a_key_comes_back(path: str, result: Any, is_there: bool) -> None:
    checked = Assertions(returns=(path,)).checked("t", ok(result))
    assert (checked.status == "ok") is is_there
    assert checked.result == result
    if not is_there:
        assert checked.error is not None
        assert (checked.error.kind, checked.error.retryable) == ("schema", False)


def test_a_failure_stays_what_it_is() -> None:
    outcome = failed("timeout", "too slow")
    assert Assertions(returns=("n",)).checked("t", outcome) is outcome


def test_all_that_is_missing_is_named_at_once() -> None:
    told: Outcome | None = Assertions(expects=("a", "b", "c")).refused("t", [{"b": 1, "d": 2}], {})
    assert told is not None
    assert told.error is not None
    assert told.error.message == "the task `t` expects the inputs `a`, `c`, which it was not given; it got `b`, `d`"


def test_one_name_needs_no_list() -> None:
    assert assertions(Value({"expects": "city", "returns": ["n", 1]})) == Assertions(("city",), ("n", "1"))
    assert assertions(Value(None)) is None
    assert assertions(None) is None
