"""Cursor loops on the server: claimed rows are recorded first and run once."""

from __future__ import annotations

from typing import Any

from noetl.model.messages import Ending, ItemEnd, LeaseLost, Pause, Report, Row, Signal, Suspension, Unpause
from noetl.model.work import WorkItem
from tests.unit.engine.given import Given, book, given

TEXT = book("""
- step: s
  loop: {cursor: {kind: postgres, claim: "select 1", key: id}, iterator: row, spec: SPEC}
  tool: {kind: noop}
  next: after
- step: after
  tool: {kind: noop}
""")


class Scene:
    """A cursor loop, and what workers do on its work."""

    def __init__(self, spec: str = "{mode: parallel, max_in_flight: 4}") -> None:
        self.played: Given = given(TEXT.replace("SPEC", spec))
        self.work: dict[str, WorkItem] = {}
        self._count = 0
        self._take()

    def _take(self) -> None:
        decided = self.played.decision
        gone = [*decided.dropped, *(work_id for work_id, _ in decided.finished)]
        self.work = {name: item for name, item in self.work.items() if name not in gone}
        self.work |= {item.work_id: item for item in decided.work}

    def tell(self, message: Any) -> Scene:
        self.played.when(message)
        self._take()
        return self

    def _report(self, chunk: str, epoch: int, **more: Any) -> Scene:
        self._count += 1
        return self.tell(Report(f"m{self._count}", "s#1", epoch, "w1", chunk=chunk, **more))

    @property
    def claim(self) -> str:
        """The chunk of the claim that waits for a worker."""
        (found,) = [item.chunk.chunk_id for item in self.work.values() if item.chunk is not None and item.chunk.claim]
        return found

    def ranges(self) -> list[tuple[int, tuple[Any, ...], tuple[str | None, ...]]]:
        parts = [item.chunk for item in self.work.values() if item.chunk is not None and not item.chunk.claim]
        return [(part.start, part.items, part.keys) for part in parts]

    def record(self, *ids: int, epoch: int = 1) -> Scene:
        """Record what a claim gave, while its transaction is open."""
        rows = tuple(Row({"id": number}, str(number)) for number in ids)
        return self._report(self.claim, epoch, rows=rows)

    def close(self, epoch: int = 1, error: dict[str, Any] | None = None) -> Scene:
        """Report that the claim took effect."""
        return self._report(self.claim, epoch, ending=Ending("error" if error else "ok", error=error))

    def claimed(self, *ids: int, epoch: int = 1) -> Scene:
        return (self.record(*ids, epoch=epoch) if ids else self).close(epoch)

    def ended(self, *indexes: int, status: str = "ok", error: dict[str, Any] | None = None, epoch: int = 1) -> Scene:
        for index in indexes:
            chunk = next(part.chunk for part in self.work.values() if part.chunk and index in _indexes(part))
            result = f"r{index}" if status == "ok" else None
            self._report(chunk.chunk_id, epoch, items=(ItemEnd(index, status, result, error),))
        return self

    def drained(self) -> Scene:
        """Answer claims with no row until the loop ends."""
        while any(item.chunk is not None and item.chunk.claim for item in self.work.values()):
            self.claimed()
        return self

    @property
    def result(self) -> Any:
        return self.played.state.ended["s"].result


def _indexes(item: WorkItem) -> range:
    part = item.chunk
    return range(0) if part is None or part.claim else range(part.start, part.start + len(part.items))


def test_rows_are_recorded_before_they_are_run_and_run_until_none_is_left() -> None:
    scene = Scene("{mode: sequential}").record(11, 12)
    assert scene.ranges() == []  # the claim has not taken effect
    scene.close()
    assert scene.ranges() == [(0, ({"id": 11}, {"id": 12}), ("11", "12"))]
    scene.ended(0, 1).claimed(13).ended(2).drained()
    assert scene.result == {
        "results": ["r0", "r1", "r2"],
        "stats": {"total": 3, "succeeded": 3, "failed": 0, "skipped": 0},
    }
    assert "after#1" in scene.played.state.runs


def test_parallel_rows_are_claimed_while_there_is_room() -> None:
    scene = Scene("{mode: parallel, max_in_flight: 2}").claimed(11).claimed(12)
    assert not [item for item in scene.work.values() if item.chunk and item.chunk.claim]
    scene.ended(0).claimed()
    assert not [item for item in scene.work.values() if item.chunk and item.chunk.claim]  # a row is under way
    scene.ended(1).claimed(13).ended(2).drained()
    assert scene.result["stats"]["total"] == 3


def test_max_in_flight_counts_as_its_value() -> None:
    scene = Scene('{mode: parallel, max_in_flight: "{{ 1 + 2 }}"}').claimed(11, 12, 13, 14)
    assert [start for start, _, _ in scene.ranges()] == [0, 1, 2]


def test_a_crash_before_the_record_claims_again() -> None:
    scene = Scene().tell(LeaseLost("l", "s#1", 1, "c1")).claimed(11, epoch=2).ended(0).drained()
    assert scene.result["stats"]["total"] == 1


def test_a_crash_between_record_and_commit_runs_the_row_once() -> None:
    scene = Scene().record(11).tell(LeaseLost("l", "s#1", 1, "c1"))
    assert scene.ranges() == []
    scene.claimed(11, epoch=2)  # its transaction was rolled back: it comes again
    assert scene.ranges() == [(0, ({"id": 11},), ("11",))]
    scene.ended(0).drained()
    assert scene.result["results"] == ["r0"]


def test_a_crash_between_commit_and_end_runs_the_row_once() -> None:
    scene = Scene().record(11).tell(LeaseLost("l", "s#1", 1, "c1")).claimed(epoch=2)  # it was marked: none comes
    assert scene.ranges() == [(0, ({"id": 11},), ("11",))]
    scene.ended(0).drained()
    assert scene.result["results"] == ["r0"]


def test_a_row_that_comes_twice_in_one_claim_is_one() -> None:
    assert Scene().claimed(11, 11).ended(0).drained().result["stats"]["total"] == 1


def test_a_claim_that_marks_nothing_does_not_run_for_ever() -> None:
    scene = Scene().claimed(11).ended(0).claimed(11).claimed(11)
    assert scene.played.state.error is not None
    assert "it must mark what it claims" in scene.played.state.error["message"]


def test_the_report_of_a_claim_that_was_lost_is_late() -> None:
    scene = Scene().record(11, epoch=1).tell(LeaseLost("l", "s#1", 1, "c1")).record(12, epoch=2)
    scene.record(13, epoch=1)
    assert [event.event_type for event in scene.played.decision.events] == ["report.late"]


def test_a_row_suspends_alone_and_goes_on() -> None:
    scene = Scene().claimed(11, 12)
    rests = Suspension("wait", {"counter": 0}, signal="go", index=0)
    scene._report("c2", 1, suspension=rests)
    scene.ended(1)
    assert scene.played.state.runs["s#1"].loop is not None
    scene.claimed()  # none is left, but a row rests
    scene.tell(Signal("s", "go", 1))
    assert [(start, keys) for start, _, keys in scene.ranges()] == [(0, ("11",))]
    scene.ended(0).drained()
    assert scene.result["results"] == ["r0", "r1"]


def test_a_row_that_fails_ends_the_loop_and_its_claim() -> None:
    broken = {"kind": "server_error", "message": "it broke"}
    scene = Scene().claimed(11, 12).ended(0, status="error", error=broken)
    assert scene.played.state.status == "failed"
    assert not scene.work
    assert "item 0 of the loop failed" in scene.played.last("step.failed").payload["error"]["message"]


def test_best_effort_goes_on_after_a_row_that_failed() -> None:
    broken = {"kind": "server_error", "message": "it broke"}
    scene = Scene("{mode: parallel, policy: {failure: {mode: best_effort}}}").claimed(11, 12)
    scene.ended(0, status="error", error=broken).ended(1).drained()
    assert scene.result["results"] == [None, "r1"]
    assert scene.result["stats"] == {"total": 2, "succeeded": 1, "failed": 1, "skipped": 0}


def test_a_claim_that_fails_fails_the_step() -> None:
    scene = Scene().claimed(11).ended(0).close(error={"kind": "db_connection", "message": "nobody answers"})
    assert scene.played.state.error is not None
    assert scene.played.state.error["kind"] == "db_connection"


def test_a_claim_that_no_worker_finishes_fails_the_step() -> None:
    scene = Scene().tell(LeaseLost("l", "s#1", 1, "c1", exhausted=True))
    assert scene.played.state.error is not None
    assert scene.played.state.error["code"] == "LEASE_LOST"


def test_a_pause_holds_the_next_claim() -> None:
    scene = Scene("{mode: sequential}").claimed(11).tell(Pause("p")).ended(0)
    assert not scene.work
    assert scene.tell(Unpause("r")).drained().result["stats"]["total"] == 1


def test_the_state_of_a_cursor_does_not_keep_rows_that_ended() -> None:
    scene = Scene().claimed(11, 12).ended(0)
    loop = scene.played.state.runs["s#1"].loop
    assert loop is not None
    assert (loop.items, loop.names, loop.keys) == ([None, {"id": 12}], {1: "12"}, {"11": 0, "12": 1})
