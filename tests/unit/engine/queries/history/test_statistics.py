"""Statistics of executions and steps: exact over what they are given."""

from __future__ import annotations

import pytest

from noetl.engine.queries.history.statistics import StepSums, StepTimes, Sums, percentile, step_sums, step_times, sums
from noetl.engine.queries.track import build
from noetl.testing.play import Said, Script

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n"
TWO = "- step: a\n  tool: {kind: noop}\n  next: b\n- step: b\n  tool: {kind: noop}\n"


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([], 50, None),
        ([7], 95, 7),
        ([3, 1, 2], 50, 2),
        ([1, 2, 3, 4], 50, 2),
        (range(1, 101), 95, 95),
        ([5, 1], 100, 5),
    ],
)
def test_a_percentile_is_one_of_the_values(values: list[int], percent: int, expected: int | None) -> None:
    assert percentile(values, percent) == expected


def test_durations_are_those_of_completed_executions() -> None:
    given = [("completed", 10, 20), ("completed", 10, 40), ("failed", 10, 11), ("failed", 1, 9), ("running", 10, None)]
    counts = {"completed": 2, "failed": 2, "running": 1}
    assert sums(given) == Sums(counts, 10, 30, 0.5)
    assert sums([("running", 1, None)]) == Sums({"running": 1}, None, None, None)


def test_steps_of_an_execution_have_their_runs_and_failures() -> None:
    failing = Said(error={"kind": "unknown", "message": "no"})
    script = Script(HEAD + TWO, {"a": 1, "b": failing}, payload={}).run(timers=False)
    found = step_times(build(script.plan, script.state.execution_id, script.events))
    assert {step: (one.state, one.runs, one.failed, len(one.durations)) for step, one in found.items()} == {
        "a": ("done", 1, 0, 1),
        "b": ("failed", 1, 1, 1),
    }


def test_steps_are_summed_up_in_the_order_of_the_playbook() -> None:
    first = {
        "b": StepTimes("done", 1, 0, (5,)),
        "a": StepTimes("failed", 2, 1, (1, 3)),
        "gone": StepTimes("running", 1),
    }
    second = {"a": StepTimes("done", 1, 0, (9,))}
    assert step_sums([first, second], ["a", "b", "c"]) == [
        StepSums("a", 2, 3, 1, 3, 9),
        StepSums("b", 1, 1, 0, 5, 5),
        StepSums("gone", 1, 1, 0, None, None),
    ]
