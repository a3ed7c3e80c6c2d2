"""Which step-runs of a long track are columns, and which are rows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from noetl.engine.queries.track import Span
from noetl.server.cache.track_rows import packed

ORDINARY = Span(
    "a#1", "a", (5, 10), state="done", started=(6, 12), ended=(9, 20), worker="w", attempts=[(12, 20, True, "t")]
)


def test_an_ordinary_step_run_is_in_the_columns() -> None:
    others, plain = packed([ORDINARY, replace(ORDINARY, run="a#2")])
    assert others == []
    assert (plain.run, [plain.names[at] for at in plain.step]) == (["a#1", "a#2"], ["a", "a"])
    assert (plain.scheduled, plain.started, plain.ended) == ([5, 5], [1, 1], [4, 4])
    assert (plain.scheduled_ms, plain.started_ms, plain.ended_ms) == ([10, 10], [2, 2], [10, 10])


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "failed"}, {"ended": None}, {"waits": [(1, 2, "gate")]}, {"total": 3}, {"role": "final"},
        {"attempts": [(13, 20, True, "t")]}, {"attempts": [(12, 20, False, "t")]}, {"attempts": []}, {"of": "b#1"},
    ],
)  # fmt: skip
def test_any_other_step_run_is_a_row(changed: dict[str, object]) -> None:
    others, plain = packed([replace(ORDINARY, **changed)])
    assert ([one.run for one in others], plain.run) == (["a#1"], [])
