"""Loops on the server: lists, widths, ranges, reducers, lost leases.

Order, failures and limits of whole loops are played in tests/scenarios/loop_*.
"""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.routing.loops import MOST_ITEMS
from noetl.engine.state.execution import dump
from noetl.model.messages import ItemEnd, LeaseLost, Report
from noetl.testing.play import Hold, Said, Script, play
from tests.unit.engine.given import Given, book, given


def looped(items: str, spec: str = "{mode: parallel}") -> str:
    return book(f"""
- step: s
  loop: {{in: {items}, iterator: x, spec: {spec}}}
  tool: {{kind: noop}}
  next: after
- step: after
  tool: {{kind: noop}}
""")


def item(index: int, chunk: str, status: str = "ok", result: Any = None, epoch: int = 1, **more: Any) -> Report:
    ended = ItemEnd(index, status, result, **more)
    return Report(f"i{index}-{epoch}", "s#1", epoch, "w1", items=(ended,), chunk=chunk)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("[1, 2]", [1, 2]),
        ('"{{ [1, 2] }}"', [1, 2]),
        ('"{{ range(3) }}"', [0, 1, 2]),
        ("'[1, \"a\"]'", [1, "a"]),
        ('"{{ none }}"', []),
        ("'null'", []),
        ("[]", []),
    ],
)
def test_lists_are_coerced(items: str, expected: list[Any]) -> None:
    script = play(looped(items))
    assert script.of("loop.started")[0].payload["items"] == expected
    assert script.status == "completed"


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ("\"{{ {'a': 1} }}\"", "map"),
        ("'text'", "text"),
        ('"{{ 5 }}"', "number"),
        ('"{{ true }}"', "flag"),
        ('"{{ ctx.gone }}"', "`ctx.gone` is undefined"),
    ],
)
def test_anything_else_is_an_error(items: str, words: str) -> None:
    script = play(looped(items))
    assert script.status == "failed"
    assert script.state.error is not None
    assert words in script.state.error["message"]
    assert "loop.in" in script.state.error["message"]


def widths(scene: Given) -> int:
    loop = scene.state.runs["s#1"].loop
    assert loop is not None
    return sum(piece.width for piece in loop.pieces.values()) + len(loop.suspended)


def test_no_more_than_max_in_flight_are_issued() -> None:
    scene = given(looped('"{{ range(9) }}"', '{mode: parallel, max_in_flight: "{{ 1 + 2 }}"}'))
    assert [work.chunk.start for work in scene.decision.work if work.chunk] == [0, 1, 2]
    scene.when(item(1, "c2"))
    assert widths(scene) == 3


def test_sequential_stays_on_one_lease_in_order() -> None:
    scene = given(looped("[a, b, c]", "{mode: sequential}"))
    (work,) = scene.decision.work
    assert work.chunk is not None
    assert (work.chunk.items, work.chunk.width) == (("a", "b", "c"), 1)
    scene.when(item(0, "c1", writes={"seen": 1}))
    assert scene.state.ctx == {"seen": 1}  # the next item sees it
    assert scene.decision.held == (("9000:s#1:c1", 1),)


def test_sequential_and_distributed_issues_one_item_after_the_other() -> None:
    scene = given(looped("[a, b]", "{mode: sequential, policy: {exec: distributed}}"))
    assert [work.work_id for work in scene.decision.work] == ["9000:s#1:c1"]
    scene.when(item(0, "c1"))
    assert [work.chunk.start for work in scene.decision.work if work.chunk] == [1]


def test_parallel_and_local_is_one_range_of_that_width() -> None:
    scene = given(looped('"{{ range(9) }}"', "{mode: parallel, max_in_flight: 4, policy: {exec: local}}"))
    (work,) = scene.decision.work
    assert work.chunk is not None
    assert (len(work.chunk.items), work.chunk.width) == (9, 4)


def test_fail_fast_takes_the_rest_back_and_fails_the_step() -> None:
    scene = given(looped('"{{ range(3) }}"'))
    scene.when(item(1, "c2", "error", error={"kind": "timeout", "message": "no answer"}))
    assert scene.state.status == "failed"
    assert {"9000:s#1:c1", "9000:s#1:c3"} <= set(scene.decision.dropped)
    error = scene.last("step.failed").payload["error"]
    assert "item 1" in error["message"]
    assert error["kind"] == "timeout"
    scene.when(item(0, "c1")).then("report.late s")


@pytest.mark.parametrize(
    ("how", "values", "expected"),
    [
        ("sum", [1, 2, 4], 7),
        ("min", [3, 1, 2], 1),
        ("max", [3, 1, 2], 3),
        ("append", [[1], 2, "x"], [[1], 2, "x"]),
        ("merge", [{"a": {"x": 1}}, {"a": {"y": 2}}, {"b": 3}], {"a": {"x": 1, "y": 2}, "b": 3}),
        ("last", [1, 2, 3], 3),
        ("count", ["a", "b", "c"], 3),
    ],
)
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_reducers_make_one_value_by_index(how: str, values: list[Any], expected: Any, order: list[int]) -> None:
    scene = given(looped("[0, 0, 0]", f"{{mode: parallel, reduce: {{ctx.k: {how}}}}}"))
    for index in order:
        scene.when(item(index, f"c{index + 1}", writes={"k": values[index]}))
    assert scene.state.ctx == {"k": expected}


def test_a_reducer_that_nothing_was_written_to_is_empty() -> None:
    script = play(looped("[]", "{mode: parallel, reduce: {ctx.n: sum, ctx.l: append, ctx.m: max}}"))
    assert script.state.ctx == {"n": 0, "l": []}


def test_a_value_that_does_not_fit_its_reducer_fails_the_step() -> None:
    spec = "{mode: parallel, reduce: {ctx.k: sum}}"
    script = play(looped("[1]", spec), {"s": [Said(writes={"k": "text"})]})
    assert script.status == "failed"
    assert script.state.error is not None
    assert "sum" in script.state.error["message"]


def test_a_lost_lease_goes_on_after_what_was_reported() -> None:
    scene = given(looped("[a, b, c, d]", "{mode: sequential}"), item(0, "c1"), item(2, "c1"))
    scene.when(LeaseLost("l", "s#1", 1, "c1"))
    (work,) = scene.decision.work
    assert work.chunk is not None
    assert (work.chunk.start, work.chunk.items, work.chunk.ended) == (1, ("b", "c", "d"), (2,))
    scene.when(item(1, "c1", epoch=2))
    scene.when(item(3, "c1")).then("report.late s")  # the first owner is too late


def test_lost_work_waits_as_retries_dispatch_says() -> None:
    head = "executor: {spec: {retries: {dispatch: {base_ms: 1000, max_ms: 1500}}}}"
    text = book("  - {step: s, tool: {kind: noop}}", head)
    waits = []
    for delivery in (1, 2, 3):
        scene = given(text).when(LeaseLost("l", "s#1", delivery, attempt=delivery))
        waits.append(scene.decision.work[0].available_at - scene.at)
    assert 500 <= waits[0] <= 1500
    assert all(0 < wait <= 1500 for wait in waits)
    assert (
        given(book("  - {step: s, tool: {kind: noop}}")).when(LeaseLost("l", "s#1", 1)).decision.work[0].available_at
        == 0
    )


def test_an_item_that_is_reported_twice_counts_once() -> None:
    scene = given(looped("[a, b]", "{mode: sequential}"), item(0, "c1", result=1))
    scene.when(item(0, "c1", result=2))
    assert not [event for event in scene.decision.events if event.event_type.startswith("loop.iteration.done")]


def test_items_whose_deliveries_are_used_up_fail() -> None:
    scene = given(looped("[a, b]", "{mode: parallel, policy: {failure: {mode: best_effort}}}"))
    scene.when(LeaseLost("l", "s#1", 3, "c1", exhausted=True)).when(item(1, "c2", result=1))
    assert scene.state.ended["s"].result["results"] == [None, 1]
    assert scene.last("loop.done").payload["errors"][0]["error"]["code"] == "LEASE_LOST"


def test_a_loop_costs_one_row_per_item_and_three_per_range() -> None:
    script = Script(looped('"{{ range(2000) }}"'), {"s": lambda work, index: Said(took_ms=1)}).run()
    rows = [event for event in script.events if event.step_run_id == "s#1" and event.iteration is None]
    ranges = len(script.of("loop.iteration.scheduled"))
    assert len(script.of("loop.iteration.done")) == 2000
    assert len(rows) <= 3 * ranges + 6
    assert ranges < 200
    assert max(event.payload["count"] for event in script.of("loop.iteration.scheduled")) <= MOST_ITEMS
    script.check()


def test_long_results_are_not_written_twice_but_are_in_the_state() -> None:
    script = play(looped('"{{ range(1500) }}"'), {"s": lambda work, index: index})
    assert "result" not in script.of("step.done")[0].payload
    assert script.state.ended["s"].result["results"] == list(range(1500))


def test_a_loop_in_the_state_is_bounded_by_its_width_and_a_few_bytes_per_item() -> None:
    count = 3_000
    script = Script(
        looped(f'"{{{{ range({count}) }}}}"', "{mode: parallel, max_in_flight: 4}"),
        {"s": lambda work, index: Hold() if index == count - 1 else Said(took_ms=1)},
    ).run()
    loop = script.state.runs["s#1"].loop
    assert loop is not None
    assert (loop.ended, len(loop.pieces)) == (count - 1, 1)
    assert not loop.writes
    assert len(dump(script.state)) < 5 * count


def test_what_an_item_tells_of_its_error_is_told_of_the_loop_too() -> None:
    scene = given(looped("[1, 2]"))
    error = {"kind": "client_error", "message": "no", "retryable": False, "details": {"row": 7}}
    scene.when(item(1, "c2", "error", error=error))
    told = scene.state.error
    assert told is not None
    assert told["details"] == {
        "row": 7,
        "index": 1,
        "stats": {"total": 2, "succeeded": 0, "failed": 1, "skipped": 0},
    }
    assert told["message"] == "item 1 of the loop failed: no"
