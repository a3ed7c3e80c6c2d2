"""The functions that templates may call."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from noetl.expr import FUNCTIONS, EvaluationError, compile_template
from tests.unit.expr.evaluating import error_of, text_of, value_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("range(3)", [0, 1, 2]),
        ("range(3, 1, -1)", [3, 2]),
        ("range(stop=5, start=3)", [3, 4]),
        ("dict(a=1)", {"a": 1}),
        ("dict({'b': 2}, a=1)", {"b": 2, "a": 1}),
        ("range(*[1, 3])", [1, 2]),
        ("dict(**{'a': 1})", {"a": 1}),
        ("timedelta(minutes=1.5)", timedelta(seconds=90)),
    ],
)
def test_pure_function(expression: str, value: Any) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("range('a')", "must be an integer"),
        ("range(1, 2, 0)", "must not be zero"),
        ("range(*5)", "list of arguments"),
        ("dict(**[1])", "map of named arguments"),
        ("dict([1])", "takes a map"),
        ("timedelta(days='x')", "not a duration"),
        ("timedelta(days=10**10)", "not a duration"),
    ],
)
def test_what_does_not_fit_is_named(expression: str, message: str) -> None:
    assert message in error_of(expression).message


def test_the_moment_is_handed_in() -> None:
    given = {"done": lambda step: step == "a", "ok": lambda step: step == "b", "fail": lambda step: step == "c"}
    template = compile_template("{{ [done('a'), ok('a'), fail('c')] }}")
    assert template.evaluate({}, functions=given) == [True, False, True]


@pytest.mark.parametrize("name", ["now", "gen_uuid"])
def test_without_the_moment_there_is_no_value(name: str) -> None:
    with pytest.raises(EvaluationError, match="is not available here"):
        value_of(f"{name}()")


def test_what_is_handed_in_must_be_a_function() -> None:
    with pytest.raises(EvaluationError, match="is not available here"):
        compile_template("{{ now() }}").evaluate({}, functions={"now": "x"})  # type: ignore[dict-item]


def test_data_is_never_a_function() -> None:
    assert "is a value" in error_of("[1][0]()").message
    assert "unknown function `x`" in error_of("x()", x=5).message
    assert "is not available here" in error_of("(now)()").message


def test_a_name_of_a_function_can_be_a_name_of_data() -> None:
    assert value_of("range + ok", range=1, ok=2) == 3
    assert text_of("{% set range = 5 %}{{ range }}!") == "5!"


def test_which_functions_depend_on_the_moment() -> None:
    assert {name for name, function in FUNCTIONS.items() if not function.pure} == {
        "now", "gen_uuid", "done", "ok", "fail",
    }  # fmt: skip
