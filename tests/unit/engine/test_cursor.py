"""Tests cursor loops on the control side, with the rows of a scripted claim: one lease, rows in any order, until none is left."""

from __future__ import annotations

from typing import Any

from noetl.model.messages import Ending, ItemEnd, LeaseLost, Report
from tests.unit.engine.given import Given, book, given

ROWS = [{"id": 11, "name": "a"}, {"id": 12, "name": "b"}, {"id": 13, "name": "c"}]
TEXT = book("""
- step: s
  loop: {cursor: {kind: postgres, claim: "select 1", key: id}, iterator: row, spec: SPEC}
  tool: {kind: noop}
  next: after
- step: after
  tool: {kind: noop}
""")


def scene(spec: str = "{mode: parallel}") -> Given:
    return given(TEXT.replace("SPEC", spec))


def ended(*indexes: int, epoch: int = 1, status: str = "ok", error: dict[str, Any] | None = None) -> Report:
    items = tuple(
        ItemEnd(at, status, ROWS[at]["name"] if status == "ok" else None, error, key=str(ROWS[at]["id"]))
        for at in indexes
    )
    return Report(f"rows-{indexes}-{epoch}", "s#1", epoch, "w1", items=items)


def none_left(epoch: int = 1) -> Report:
    return Report(f"none-{epoch}", "s#1", epoch, "w1", ending=Ending("ok"))


def test_rows_are_claimed_on_one_lease_until_none_is_left() -> None:
    played = scene()
    (work,) = played.decision.work
    assert (work.chunk, work.resume) == (None, None)
    played.when(ended(0)).when(ended(1, 2)).when(none_left())
    stats = {"total": 3, "succeeded": 3, "failed": 0, "skipped": 0}
    assert played.state.ended["s"].result == {"results": ["a", "b", "c"], "stats": stats}
    assert "after#1" in played.state.runs
    assert [event.payload["key"] for event in played.log if event.event_type == "loop.iteration.done"] == [
        "11",
        "12",
        "13",
    ]


def test_no_row_at_all_is_an_empty_loop() -> None:
    played = scene().when(none_left())
    stats = {"total": 0, "succeeded": 0, "failed": 0, "skipped": 0}
    assert played.state.ended["s"].result == {"results": [], "stats": stats}


def test_rows_end_in_any_order_and_each_counts_once() -> None:
    played = scene().when(ended(1)).when(ended(0)).when(ended(2)).when(ended(1, epoch=1))
    assert not [event for event in played.decision.events if event.event_type == "loop.iteration.done"]
    played.when(none_left())
    assert played.state.ended["s"].result["results"] == ["a", "b", "c"]
    assert played.state.ended["s"].result["stats"]["total"] == 3


def test_a_new_owner_goes_on_after_the_recorded_rows_and_knows_their_keys() -> None:
    played = scene().when(ended(1, 0)).when(LeaseLost("l", "s#1", 1))
    (work,) = played.decision.work
    assert work.resume == {"cursor": 2, "keys": ["12", "11"]}
    played.when(ended(2, epoch=2)).when(ended(2, epoch=1)).then("report.late s")
    played.when(none_left(2))
    assert played.state.ended["s"].result["results"] == ["a", "b", "c"]


def test_a_row_that_fails_ends_the_loop_and_its_lease() -> None:
    broken = {"kind": "server_error", "message": "it broke"}
    played = scene().when(ended(0)).when(ended(1, status="error", error=broken))
    assert played.state.status == "failed"
    assert played.decision.finished == (("9000:s#1", 1),)
    assert "item 1 of the loop failed" in played.last("step.failed").payload["error"]["message"]


def test_best_effort_goes_on_after_a_row_that_failed() -> None:
    broken = {"kind": "server_error", "message": "it broke"}
    played = scene("{mode: parallel, policy: {failure: {mode: best_effort}}}")
    played.when(ended(0, status="error", error=broken)).when(ended(1)).when(none_left())
    assert played.state.ended["s"].result["results"] == [None, "b"]
    assert played.state.ended["s"].result["stats"] == {"total": 2, "succeeded": 1, "failed": 1, "skipped": 0}


def test_a_claim_that_fails_fails_the_step() -> None:
    error = {"kind": "db_connection", "message": "nobody answers"}
    played = scene().when(ended(0)).when(Report("e", "s#1", 1, "w1", ending=Ending("error", error=error)))
    assert played.state.error is not None
    assert played.state.error["kind"] == "db_connection"
