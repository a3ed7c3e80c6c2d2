"""Values that a condition read, as the log shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from noetl.engine.decision.scope import Scope, functions
from noetl.engine.decision.scope import test as judged
from noetl.engine.state.execution import Execution


def read(value: Any) -> Any:
    state = Execution("1", workload={"value": value})
    verdict = judged("{{ workload.value and true }}", Scope(state, {}), functions(state, 0), None)
    return verdict.read["workload.value"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([1, 2], [1, 2]),
        ({"a": [1]}, {"a": [1]}),
        ([7] * 66, [7] * 66),  # 198 characters
        ([7] * 67, "(list of 67)"),
        ({"a": "x" * 191}, {"a": "x" * 191}),
        ({"a": "x" * 192}, "(map of 1)"),
        ([[[7] * 300]], "(list of 1)"),
        ("x" * 201, "x" * 200 + "…"),
    ],
)
def test_short_values_are_shown_and_long_ones_counted(value: Any, shown: Any) -> None:
    assert read(value) == shown


def test_a_large_value_is_not_walked() -> None:
    walked = 0

    class Large(list[int]):
        def __iter__(self) -> Iterator[int]:
            nonlocal walked
            walked += 1
            return super().__iter__()

    assert read(Large([7]) * 1 + [7] * 100_000) == "(list of 100001)"
    assert read([Large([7] * 100_000)]) == "(list of 1)"
    assert walked == 0
