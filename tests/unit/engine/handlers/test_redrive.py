"""Retried dead letters: in a running loop, after the end, failing again."""

from __future__ import annotations

from typing import Any

from noetl.engine.decision.builder import Decision, projection
from noetl.engine.handlers.decide import NeedsLoad, decide
from noetl.engine.queries.recall import recalled
from noetl.engine.state.execution import checksum
from noetl.model.letters import DeadLetter, changed
from noetl.model.messages import (
    Cancel,
    ChildEnded,
    Discard,
    ItemEnd,
    LeaseLost,
    Redrive,
    Report,
    Signal,
    Suspension,
    TimerDue,
)
from tests.unit.engine.given import Given, book, broke, done

ONE = book("  - {step: one, tool: {kind: noop}, next: two}\n  - {step: two, tool: {kind: noop}}")
LOOP = book(
    """  - step: work
    loop: {in: [a, b, c], iterator: x, spec: {policy: {failure: {mode: best_effort}}}}
    tool: {kind: noop}"""
)
ERROR = {"kind": "client_error", "message": "no such row", "task": "work_task"}


def item(index: int, status: str = "ok", run: str = "work#1", chunk: str = "c1", epoch: int = 1, **more: Any) -> Report:
    more |= {"error": ERROR} if status == "error" else {}
    return Report(
        f"{run}-{index}-{status}-{epoch}", run, epoch, "w1", items=(ItemEnd(index, status, **more),), chunk=chunk
    )


class Replaying(Given):
    """A log, and the letters that follow from it."""

    def letters(self) -> dict[str, DeadLetter]:
        from noetl.engine.state.dead_letters import change_of

        found: dict[str, DeadLetter] = {}
        for event in self.log:
            change = change_of("tests/test", event)
            letter = None if change is None else changed(found.get(change.message_id), change)
            if letter is not None:
                found[letter.message_id] = letter
        return found

    def letter(self) -> DeadLetter:
        (found,) = self.letters().values()
        return found

    def replay(self, name: str = "replay", patch: dict[str, Any] | None = None) -> Replaying:
        again = recalled(self.log, self.letters().values())
        self.when(Redrive(name, tuple(again.values()), patch or {}, "ada"))
        return self


def after(text: str, *messages: Any, payload: dict[str, Any] | None = None) -> Replaying:
    return Replaying(text, messages, payload)


def partial() -> Replaying:
    return after(LOOP, item(0, result="A"), item(1, "error"), item(2, result="C"))


def test_the_work_of_a_letter_is_what_it_was() -> None:
    found = partial()
    assert found.state.status == "partial"
    found.replay().then("dlq.replayed work")
    (work,) = found.decision.work
    assert work.work_id == "9000:work#1!1:replayed"
    assert work.chunk is not None
    assert (work.chunk.start, work.chunk.items, work.chunk.total, work.number) == (1, ("b",), 3, 1)
    assert found.letter().status == "replaying"
    assert found.state.status == "partial"


def test_the_last_repair_of_an_ended_execution_completes_it() -> None:
    found = partial().replay()
    found.when(item(1, run="work#1!1", chunk="replayed", result="B"))
    assert [event.event_type for event in found.decision.events] == [
        "step.started",
        "loop.item.repaired",
        "playbook.corrected",
    ]
    state = found.state
    wanted = {"results": ["A", "B", "C"], "stats": {"total": 3, "succeeded": 3, "failed": 0, "skipped": 0}}
    assert (state.status, state.result, state.ended["work"].result) == ("completed", wanted, wanted)
    assert projection(state)["status"] == "completed"
    assert found.decision.finished == (("9000:work#1!1:replayed", 1),)
    assert found.letter().status == "replayed"
    assert not state.replays


def test_a_repair_that_leaves_others_corrects_nothing() -> None:
    found = after(LOOP, item(0, "error"), item(1, "error"), item(2))
    again = recalled(found.log, found.letters().values())
    found.when(Redrive("r", tuple(again.values())[:1], {}, "ada"))
    found.when(item(0, run="work#1!1", chunk="replayed"))
    assert found.state.status == "partial"
    assert found.state.result["stats"] == {"total": 3, "succeeded": 2, "failed": 1, "skipped": 0}


def test_a_replay_that_fails_waits_again_with_all_its_attempts() -> None:
    found = partial()
    first = found.letter()
    found.replay().when(item(1, "error", run="work#1!1", chunk="replayed"))
    again = found.letter()
    assert (again.status, again.attempts, again.replays) == ("pending", 2, 1)
    assert (again.first_seen, again.message_id, again.loop_index) == (first.first_seen, first.message_id, 1)
    assert again.last_seen > first.last_seen
    assert found.state.status == "partial"
    found.replay("second").when(item(1, run="work#1!2", chunk="replayed", result="B"))
    assert found.state.status == "completed"


def test_a_letter_is_replayed_once_whoever_asks() -> None:
    found = partial()
    again = tuple(recalled(found.log, found.letters().values()).values())
    found.when(Redrive("one", again))
    found.when(Redrive("two", again)).then()
    found.when(item(1, run="work#1!1", chunk="replayed", result="B"))
    found.when(Redrive("three", again)).then()
    assert found.state.result["stats"]["succeeded"] == 3


def test_an_item_that_is_replayed_while_its_loop_runs_counts_in_it() -> None:
    found = after(LOOP, item(0, "error")).replay()
    found.when(item(0, run="work#1!1", chunk="replayed", result="A"))
    loop = found.state.runs["work#1"].loop
    assert loop is not None
    assert (loop.succeeded, loop.failed, loop.errors) == (1, 0, [])
    found.when(item(1, result="B")).when(item(2, result="C"))
    assert found.state.status == "completed"
    assert found.state.result == {
        "results": ["A", "B", "C"],
        "stats": {"total": 3, "succeeded": 3, "failed": 0, "skipped": 0},
    }


def test_neither_the_loop_nor_the_end_waits_for_a_replay() -> None:
    found = after(LOOP, item(0, "error")).replay()
    found.when(item(1, result="B")).when(item(2, result="C"))
    assert found.state.status == "partial"
    assert list(found.state.replays) == ["work#1!1"]
    found.when(item(0, run="work#1!1", chunk="replayed", result="A"))
    assert (found.state.status, found.state.result["results"]) == ("completed", ["A", "B", "C"])


def test_writes_of_a_replay_are_reduced_with_the_others() -> None:
    text = LOOP.replace("best_effort}}", "best_effort}}, reduce: {ctx.sum: sum}")
    found = after(text, item(0, "error")).replay()
    found.when(item(0, run="work#1!1", chunk="replayed", writes={"ctx.sum": 1}))
    found.when(item(1, writes={"ctx.sum": 2})).when(item(2, writes={"ctx.sum": 4}))
    assert found.state.ctx["sum"] == 7


def test_a_step_that_is_repaired_has_its_result_and_nothing_follows() -> None:
    found = after(ONE, broke("one#1")).replay()
    found.when(done("one#1!1", {"n": 1})).then("step.started one", "step.repaired one")
    ended = found.state.ended["one"]
    assert (found.state.status, ended.status, ended.result) == ("failed", "ok", {"n": 1})
    assert found.letter().status == "replayed"


def test_a_step_is_replayed_with_what_it_saw() -> None:
    text = book(
        """  - {step: one, tool: {kind: noop}, set: {ctx.n: 1}, next: [{step: two, args: {a: 5}}]}
  - {step: two, tool: {kind: noop, result: "{{ ctx.n }} {{ one.x }}"}}"""
    )
    found = after(text, done("one#1", {"x": 2}), broke("two#1")).replay()
    (work,) = found.decision.work
    assert work.scopes["ctx"] == {"n": 1}
    assert work.scopes["steps"] == {"one": {"x": 2}}
    assert work.scopes["args"] == {"a": 5}


def test_a_patch_goes_with_the_work() -> None:
    found = after(ONE, broke("one#1"))
    found.replay(patch={"spec.result": 5, "args.a": 1})
    (work,) = found.decision.work
    assert work.patch == {"task": "", "values": {"spec.result": 5, "args.a": 1}}
    assert work.scopes["args"] == {"a": 1}


def test_a_compensation_that_is_repaired_is_done() -> None:
    text = book(
        """  - {step: a, tool: {kind: noop}, compensate: undo, next: b}
  - {step: b, tool: {kind: noop}}
  - {step: undo, tool: {kind: noop}}""",
        "policy: {rollback: on_fail}",
    )
    found = after(text, done("a#1", "A"), broke("b#1"), broke("undo#1"), broke("undo#2"), broke("undo#3"))
    assert (found.state.status, found.state.compensated) == ("failed", False)
    letters = [one for one in found.letters().values() if one.step_id == "undo"]
    found.when(Redrive("r", tuple(recalled(found.log, letters).values())))
    (work,) = found.decision.work
    assert (work.role, work.number, work.scopes["steps"]) == ("compensation", 1, {"a": "A"})
    found.when(done("undo#3!1"))
    assert found.state.compensated is True
    assert projection(found.state)["compensated"] is True


def test_a_discarded_letter_is_closed() -> None:
    found = partial()
    found.when(Discard("d", (("work", "work#1", 1),), "bad row", "ada")).then("dlq.discarded work")
    letter = found.letter()
    assert (letter.status, letter.note, letter.closed_by) == ("discarded", "bad row", "ada")
    assert found.state.status == "partial"
    found.replay("r").then()


def test_leases_of_a_replay_that_are_lost() -> None:
    found = partial().replay()
    found.when(LeaseLost("l1", "work#1!1", 1, "replayed", attempt=1))
    assert [work.work_id for work in found.decision.work] == ["9000:work#1!1:replayed"]
    found.when(LeaseLost("l2", "work#1!1", 2, "replayed", exhausted=True, attempt=6))
    assert found.decision.dropped == ("9000:work#1!1:replayed",)
    assert (found.letter().status, found.letter().reason, found.letter().attempts) == ("pending", "lease", 7)
    found.when(item(1, run="work#1!1", chunk="replayed")).then("report.late work")


def test_a_late_report_of_a_replay_changes_nothing() -> None:
    found = partial().replay()
    found.when(Report("p", "work#1!1", 5, "w2", chunk="replayed"))
    found.when(item(1, run="work#1!1", chunk="replayed", epoch=4)).then("report.late work")


def test_a_replay_suspends_after_the_end_and_goes_on() -> None:
    found = partial().replay()
    wait = Suspension("delay", {"phase": "delayed"}, until=found.at + 60_000, index=1)
    found.when(Report("s", "work#1!1", 1, "w1", suspension=wait, chunk="replayed"))
    assert found.decision.timers == (("wake:work#1!1", wait.until),)
    found.when(TimerDue("t", "wake:work#1!1"))
    (work,) = found.decision.work
    assert work.resume == {"pipeline": {"phase": "delayed"}, "wake": {"by": "timer"}}
    assert work.chunk is not None
    found.when(item(1, run="work#1!1", chunk="replayed", epoch=2, result="B"))
    assert found.state.status == "completed"


def test_a_replay_after_the_end_is_signalled() -> None:
    found = partial().replay()
    wait = Suspension("wait", {"phase": "waiting"}, signal="go", index=1)
    found.when(Report("s", "work#1!1", 1, "w1", suspension=wait, chunk="replayed"))
    found.when(Signal("g", "go", 5))
    (work,) = found.decision.work
    assert work.resume is not None
    assert work.resume["wake"] == {"by": "signal", "name": "go", "data": 5}
    found.when(item(1, run="work#1!1", chunk="replayed", epoch=2, result="B"))
    assert found.state.status == "completed"
    found.when(Signal("late", "go")).then()


def test_a_replay_waits_for_its_child() -> None:
    found = partial().replay()
    call = Suspension("playbook", {}, child={"path": "child"}, index=1)
    found.when(Report("s", "work#1!1", 1, "w1", suspension=call, chunk="replayed"))
    (child,) = found.state.children
    found.when(ChildEnded("c", "work#1!1", child, "completed", 5))
    (work,) = found.decision.work
    assert work.resume is not None
    assert work.resume["wake"]["result"] == 5
    assert not found.state.children


def test_a_halt_leaves_replays_alone() -> None:
    text = book(
        """  - {step: one, tool: {kind: noop}, spec: {on_step_fail: continue}, next: two}
  - {step: two, tool: {kind: noop}}"""
    )
    found = after(text, broke("one#1")).replay()
    found.when(Cancel("c"))
    assert (found.state.status, list(found.state.replays)) == ("cancelled", ["one#1!1"])
    found.when(done("one#1!1"))
    assert found.letter().status == "replayed"


def test_results_that_were_put_away_are_amended_in_their_part() -> None:
    text = LOOP.replace("    tool:", "    spec: {result: {inline_max_bytes: 20}}\n    tool:")
    found = Replaying(text, ())
    for index, status in ((0, "ok"), (1, "error"), (2, "ok")):
        _away(found, item(index, status, result="x" * 20 if status == "ok" else None))
    ((_, message),) = found.decision.inbox
    _away(found, message)
    assert found.state.status == "partial"
    found.replay()
    loaded = _away(found, item(1, run="work#1!1", chunk="replayed", result="B"))
    results = found.state.result["results"]
    assert [part["count"] for part in results["parts"]] == [3]
    assert loaded[results["parts"][0]["ref"]] == ["x" * 20, "B", "x" * 20]
    assert found.state.status == "completed"
    assert found.state.ended["work"].result == found.state.result


def test_a_repair_that_is_overtaken_by_another_loses_nothing() -> None:
    text = LOOP.replace("    tool:", "    spec: {result: {inline_max_bytes: 20}}\n    tool:")
    found = Replaying(text, ())
    for index, status in ((0, "ok"), (1, "error"), (2, "error")):
        _away(found, item(index, status, result="x" * 30 if status == "ok" else None))
    ((_, message),) = found.decision.inbox
    _away(found, message)
    found.replay()
    first, second = (item(index, run=f"work#1!{index}", chunk="replayed", result=f"r{index}") for index in (1, 2))
    resolved: dict[str, Any] = {}
    for _ in range(2):  # the part is loaded, and the new one put away: now it would be decided
        _bring(decide(found.plan, found.state, first, found.at + 1, resolved), resolved)
    _away(found, second)
    loaded = _away(found, first, resolved)
    (part,) = found.state.result["results"]["parts"]
    assert loaded[part["ref"]] == ["x" * 30, "r1", "r2"]
    assert found.state.status == "completed"


_SHELF: dict[str, Any] = {}


def _bring(made: Decision | NeedsLoad, resolved: dict[str, Any]) -> bool:
    """Load and put away what a decision needs; tells whether there was anything."""
    if isinstance(made, Decision):
        return False
    for reference in made.loads:
        resolved[str(reference["ref"])] = _SHELF[str(reference["ref"])]
    for ref, listed in made.puts.items():
        _SHELF[ref] = listed
        resolved[ref] = {"parts": [{"ref": ref, "count": len(listed), "meta": {"bytes": 9}}], "store": "db"}
    return True


def _away(found: Replaying, message: Any, resolved: dict[str, Any] | None = None) -> dict[str, Any]:
    """Decide a message as a server does that puts lists away."""
    known = {} if resolved is None else resolved
    while True:
        state = found.state
        made = decide(found.plan, state, message, found.at + 1, known)
        if not _bring(made, known):
            break
    assert isinstance(made, Decision)
    found.at += 1
    found.decision = made
    found.log += made.events
    assert checksum(found.state) == checksum(state)
    return _SHELF
