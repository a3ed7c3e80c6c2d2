"""No template gets from data to Python."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from noetl.expr import Envelope, Result, TemplateError, compile_template
from tests.unit.expr import corpus
from tests.unit.expr.plain import is_plain
from tests.unit.expr.safety.escapes import ESCAPES

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "now": lambda: datetime(2024, 1, 1, tzinfo=UTC),
    "gen_uuid": lambda: "u",
    "done": lambda step: True,
}
# Signs of Python in a string that a template made: what a class, a function or a module looks like when it is printed.
SIGNS = ("<class", "<function", "<built-in", "<bound method", "<module", "object at 0x", "<generator", "root:")


def scope() -> dict[str, Any]:
    return {**corpus.data(), "s": Result({"data": {"x": 1}}), "output": Envelope({"status": "ok", "data": {"x": 1}})}


def outcome(source: str, data: dict[str, Any]) -> Any:
    """What a template gives: its value, or the message of its error."""
    try:
        return compile_template(source).evaluate(data, functions=FUNCTIONS)
    except TemplateError as error:
        return error.message


def test_there_are_enough_and_no_doubles() -> None:
    assert len(ESCAPES) >= 200
    assert len(set(ESCAPES)) == len(ESCAPES)


@pytest.mark.parametrize("source", ESCAPES)
def test_escape_is_denied(source: str) -> None:
    data = deepcopy(corpus.data())
    value = outcome(source, data)
    assert is_plain(value), type(value)
    assert not any(sign in str(value) for sign in SIGNS)
    assert data == corpus.data()


@pytest.mark.parametrize("source", ESCAPES)
def test_escape_is_denied_in_text_with_views_and_when_traced(source: str) -> None:
    for text in (f"x {source}", source.replace("user", "s"), source.replace("user", "output")):
        try:
            value, trace = compile_template(text).evaluate_traced(scope(), functions=FUNCTIONS)
        except TemplateError:
            continue
        assert is_plain(value), type(value)
        assert is_plain(trace), trace
        assert not any(sign in str(value) for sign in SIGNS)


def test_a_sign_of_python_would_be_seen() -> None:
    assert any(sign in str(str.upper) or sign in str(str) for sign in SIGNS)
    assert not is_plain(str.upper)
    assert not is_plain([{"a": (1, 2)}])
