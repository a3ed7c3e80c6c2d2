"""What the log can hold: valid text, finite numbers, limited depth."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.engine.state.writes import plain
from noetl.expr.errors import EvaluationError
from noetl.model.plain_data import MOST_DEPTH, problem, repaired


def nested(depth: int) -> Any:
    value: Any = 1
    for at in range(depth):
        value = [value] if at % 2 else {"a": value}
    return value


ODD = [
    "\ud800",
    "a\udc00b",
    float("nan"),
    float("-inf"),
    2**60_000,
    -(2**60_000),
    nested(MOST_DEPTH + 2),
    nested(5_000),
]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_what_the_log_cannot_hold_is_named_wherever_it_is(value: Any) -> None:
    for place in (value, [value], {"a": [0, value]}, (value,)):
        assert problem(place) is not None
        with pytest.raises(EvaluationError):
            plain(place)
        assert problem(repaired(place)) is None
        assert msgspec.json.decode(msgspec.json.encode(repaired(place))) is not None
    if isinstance(value, str | int | float):
        assert problem({value: 1}) is not None
        with pytest.raises(EvaluationError):
            plain({value: 1})
        assert problem(repaired({value: object()})) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON)
def test_everything_else_is_unchanged(value: Any) -> None:
    assert problem(value) is None
    assert plain(value) == repaired(value) == value == msgspec.json.decode(msgspec.json.encode(value))


def test_the_limits_themselves_fit() -> None:
    for value in (nested(MOST_DEPTH), 10**4_298, -(10**4_298), "\0", "\x1b", 1e308):
        assert problem(value) is None
        assert plain(value) == value
