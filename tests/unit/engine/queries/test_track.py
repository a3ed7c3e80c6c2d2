"""Tracks: the law on random nets, and the bounds of series, times and loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from noetl.engine.queries.moment import STATES, project
from noetl.engine.queries.recall import recalled
from noetl.engine.queries.track import LOOP_MARKS, Track, build, extend
from noetl.engine.state.evolve import evolve
from noetl.engine.state.execution import Execution
from noetl.model.messages import Complete, Discard, Ending, ItemEnd, Redrive, Report, Signal, Suspension
from noetl.testing.play import Script
from tests.unit.engine.given import book, broke, done
from tests.unit.engine.handlers.test_redrive import LOOP, ONE, Replaying, after, item, partial
from tests.unit.engine.queries.track_law import holds
from tests.unit.engine.test_laws import explore, nets

EVERY = 10**9  # more than any track has


@given(nets(), st.data())
@settings(max_examples=40)
def test_a_lookup_equals_the_projection_of_the_fold(text: str, data: st.DataObject) -> None:
    script = explore(text, data, 30)
    holds(script.plan, script.state.execution_id, script.events)


@pytest.mark.chaos
@given(nets(), st.data())
def test_a_lookup_equals_the_projection_for_long(text: str, data: st.DataObject) -> None:
    script = explore(text, data, 200)
    holds(script.plan, script.state.execution_id, script.events)


@given(nets(), st.data())
@settings(max_examples=20)
def test_a_thinned_series_is_exact_at_its_marks(text: str, data: st.DataObject) -> None:
    script = explore(text, data, 40)
    few, whole = Track(script.plan, most_marks=3, most_times=5), Track(script.plan, most_marks=EVERY, most_times=EVERY)
    for track in (few, whole):
        state = Execution(script.state.execution_id)
        for event in script.events:
            extend(track, state, event)
    assert few.series.keys() == whole.series.keys()
    for key, series in few.series.items():
        assert len(series.seqs) <= 3
        assert [whole.series[key].at(seq) for seq in series.seqs] == series.values.tolist()
        assert series.last == whole.series[key].last
        assert (key in few.thinned) == (len(series.seqs) < len(whole.series[key].seqs))
    assert len(few.times) <= 5
    assert few.times.tolist() == whole.times[:: few.every].tolist()


def looped(items: int) -> Script:
    loop = f"{{in: '{{{{ range({items}) | list }}}}', iterator: i, spec: {{mode: parallel, max_in_flight: 50}}}}"
    script = Script(book(f"- step: work\n  loop: {loop}\n  tool: {{kind: noop}}"))
    script.start()
    while script.work:
        key, item = next(iter(script.work.items()))
        assert item.chunk is not None
        indexes = range(item.chunk.start, item.chunk.start + len(item.chunk.items))
        ends = tuple(ItemEnd(index, "ok", index) for index in indexes)
        script.tell(Report(script.message_id(), item.run_id, script.epochs[key], items=ends, chunk=item.chunk.chunk_id))
    return script


@pytest.mark.parametrize("items", [1, LOOP_MARKS, 2_500])
def test_a_long_loop_has_few_marks_and_ends_exactly(items: int) -> None:
    script = looped(items)
    track = holds(script.plan, script.state.execution_id, script.events)
    series = track.series["l:work#1"]
    assert len(series.seqs) <= LOOP_MARKS
    assert series.last == items
    span = track.spans["work#1"]
    assert (span.total, span.items_ended, span.items_failed) == (items, items, 0)


def test_the_times_of_a_step_run_tell_its_queue_attempts_and_end() -> None:
    script = Script(book("- step: one\n  tool: {kind: noop}"))
    script.start()
    key, item = next(iter(script.work.items()))
    script.now += 40
    script.tell(Report(script.message_id(), item.run_id, script.epochs[key], "w7"))
    script.now += 60
    script.tell(Report(script.message_id(), item.run_id, script.epochs[key], "w7", ending=Ending("ok", 1)))
    span = holds(script.plan, script.state.execution_id, script.events).spans["one#1"]
    begun = span.scheduled[1]
    assert span.started is not None
    assert span.ended is not None
    assert (span.started[1] - begun, span.ended[1] - begun) == (40, 100)
    assert (span.worker, span.state, span.role) == ("w7", "done", "step")
    assert span.waits == []  # its token did not wait


def test_a_step_run_names_the_one_that_sent_its_last_token() -> None:
    two = "- step: {0}\n  tool: {{kind: noop}}\n  next: meet\n"
    text = "- step: fork\n  tool: {kind: noop}\n  next: [left, right]\n" + two.format("left") + two.format("right")
    script = Script(book(text + "- step: meet\n  spec: {join: all}\n  tool: {kind: noop}"))
    script.start()
    for step in ("fork", "right", "left", "meet"):
        key, item = next((key, item) for key, item in script.work.items() if item.run_id == f"{step}#1")
        script.now += 10
        script.tell(Report(script.message_id(), item.run_id, script.epochs[key], ending=Ending("ok", 1)))
    spans = holds(script.plan, script.state.execution_id, script.events).spans
    sent = {"fork#1": None, "left#1": "fork#1", "right#1": "fork#1", "meet#1": "left#1"}
    assert {run: span.after for run, span in spans.items()} == sent


def test_every_state_has_its_place_in_the_list() -> None:
    assert len(set(STATES)) == len(STATES)
    assert STATES[0] == ""


def test_a_malformed_event_of_another_program_changes_nothing() -> None:
    script = Script(book("- step: one\n  tool: {kind: noop}"))
    script.start()
    broken = [*script.events]
    for name in ("next.evaluated", "loop.item.repaired", "step.suspended", "step.repaired", "dlq.replayed"):
        seq = len(broken) + 1
        more = {"event_type": name, "event_id": f"x.{seq}", "seq": seq, "step_run_id": "one#1", "payload": {"arcs": 3}}
        broken.append(replace(broken[-1], **more))
    state = Execution(script.state.execution_id)
    for event in broken:
        evolve(state, event)
    track = build(script.plan, state.execution_id, broken)
    assert track.seq == len(broken)
    assert project(script.plan, state).steps == {"one": "scheduled"}


def two_errors_one_repair() -> Replaying:
    found = after(LOOP, item(0, "error"), item(1, "error"), item(2))
    again = tuple(recalled(found.log, found.letters().values()).values())
    found.when(Redrive("r", again[:1], {}, "ada"))
    found.when(item(0, run="work#1!1", chunk="replayed"))
    return found


def retried(*messages: Any) -> Replaying:
    found = partial().replay()
    for message in messages:
        found.when(message)
    return found


def while_it_runs() -> Replaying:
    found = after(LOOP, item(0, "error")).replay()
    found.when(item(0, run="work#1!1", chunk="replayed", result="A"))
    found.when(item(1, result="B")).when(item(2, "error"))
    return found


def step_repaired() -> Replaying:
    found = after(ONE, broke("one#1")).replay()
    found.when(done("one#1!1", {"n": 1}))
    return found


def compensation_repaired() -> Replaying:
    steps = "  - {step: a, tool: {kind: noop}, compensate: undo, next: b}\n  - {step: b, tool: {kind: noop}}\n"
    text = book(steps + "  - {step: undo, tool: {kind: noop}}", "policy: {rollback: on_fail}")
    found = after(text, done("a#1", "A"), broke("b#1"), broke("undo#1"), broke("undo#2"), broke("undo#3"))
    letters = [one for one in found.letters().values() if one.step_id == "undo"]
    found.when(Redrive("r", tuple(recalled(found.log, letters).values())))
    found.when(done("undo#3!1"))
    return found


def discarded() -> Replaying:
    found = partial()
    found.when(Discard("d", (("work", "work#1", 1),), "bad row", "ada"))
    return found


LAST = item(1, run="work#1!1", chunk="replayed", result="B")
WAIT = Suspension("wait", {"phase": "waiting"}, signal="go", index=1)
LETTERS: list[tuple[Callable[[], Replaying], dict[str, int], dict[str, str]]] = [
    (two_errors_one_repair, {"d:work": 1, "f:work#1": 1}, {"work#1": "partial", "work#1!1": "done"}),
    (lambda: retried(LAST), {"d:work": 0, "f:work#1": 0}, {"work#1": "done", "work#1!1": "done"}),
    (lambda: retried(item(1, "error", run="work#1!1", chunk="replayed")), {"d:work": 1}, {"work#1!1": "failed"}),
    (
        lambda: retried(Report("s", "work#1!1", 1, "w1", suspension=WAIT, chunk="replayed"), Signal("g", "go", 5)),
        {"d:work": 0, "c": 1},
        {"work#1!1": "scheduled"},
    ),
    (while_it_runs, {"d:work": 1, "f:work#1": 1, "l:work#1": 3}, {"work#1": "partial"}),
    (step_repaired, {"d:one": 0}, {"one#1": "repaired", "one#1!1": "done"}),
    (compensation_repaired, {"d:undo": 0, "d:b": 1}, {"a#1": "undone", "undo#3!1": "done"}),
    (discarded, {"d:work": 0, "f:work#1": 1}, {"work#1": "partial"}),
]


@pytest.mark.parametrize(("log", "values", "states"), LETTERS)
def test_dead_letters_and_their_repairs_are_on_the_track(
    log: Callable[[], Replaying], values: dict[str, int], states: dict[str, str]
) -> None:
    found = log()
    track = holds(found.plan, "9000", found.log)
    assert {key: track.series[key].last for key in values} == values
    assert {run: track.spans[run].state for run in states} == states


def test_a_step_that_was_completed_by_hand_says_so() -> None:
    found = after(ONE)
    found.when(Complete("c", "one", 5, "ada"))
    track = holds(found.plan, "9000", found.log)
    assert track.spans["one#1"].state == "forced"
    assert track.spans["two#1"].state == "scheduled"
