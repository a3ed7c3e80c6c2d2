"""Records of a report: every known event, and the same state as folded."""

from __future__ import annotations

from typing import Any

from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from noetl.engine.state.evolve_runs import TASK_EVENTS
from noetl.model.events import EVENT_TYPES
from noetl.model.ids import event_id
from noetl.model.messages import Record, Report
from tests.unit.engine.given import book, done, given

TWO = book("- step: one\n  tool: {kind: noop}\n  next: two\n- step: two\n  tool: {kind: noop}")
PAYLOADS: dict[str, dict[str, Any]] = {  # of events that workers do not report today, and that change a state
    "ctx.patched": {"writes": {"n": 1}},
    "signal.received": {"name": "go", "data": 1},
    "playbook.paused": {},
    "task.new": {"of": "a newer worker"},
}
records = st.builds(
    Record,
    st.sampled_from(sorted(TASK_EVENTS | {*PAYLOADS})),
    st.integers(0, 10**13),
    st.sampled_from(["", "t"]),
    st.sampled_from([None, "key"]),
    st.sampled_from([None, 3]),
    st.sampled_from([None, 1]),
    st.sampled_from([None, "ok"]),
    st.sampled_from([None, 0.5]),
    st.sampled_from([{}, {"result": 1}, {"pipeline": {"at": 7}}]),
).map(
    lambda found: (
        Record(found.event_type, found.at, payload=PAYLOADS[found.event_type])
        if found.event_type in PAYLOADS
        else found
    )
)


@drawn(st.lists(records, max_size=5).map(tuple), st.booleans())
@settings(max_examples=150)
def test_a_report_is_recorded_whole_and_applied_as_it_is_folded(told: tuple[Record, ...], ends: bool) -> None:
    scene = given(TWO)
    before = scene.state.seq
    if ends:
        scene.when(done("one#1", records=told))  # asserts that the decided state is the fold of the log
    else:
        scene.when(Report("p", "one#1", 1, "w1", told, pipeline={"at": 1}))
    message_id = "done-one#1-1" if ends else "p"
    events = scene.decision.events
    assert [event.seq for event in events] == [before + number for number in range(1, len(events) + 1)]
    assert [event.event_id for event in events] == [event_id(message_id, number) for number in range(len(events))]
    known = [record for record in told if record.event_type in EVENT_TYPES]
    written = [event for event in events if event.source == "worker"]
    assert len(written) == len(known)
    for event, record in zip(written, known, strict=True):
        assert (event.event_type, event.entity_id) == (record.event_type, record.task)
        assert event.timestamp == min(record.at, scene.at)  # a report tells of what has happened
        assert (event.step_run_id, event.parent_id, event.entity_type) == ("one#1", "one#1", _entity(record))
        assert (event.task_run_id, event.iteration, event.attempt) == (
            record.task_run_id,
            record.iteration,
            record.attempt,
        )
        assert (event.status, event.duration_ms) == (record.status, record.duration_ms)
        more = {} if ends or event is not written[-1] else {"pipeline": {"at": 1}}
        assert event.payload == {**record.payload, **more}


def _entity(record: Record) -> str:
    return EVENT_TYPES[record.event_type].entity


def test_names_that_are_not_known_are_left_out_and_the_last_known_one_says_where_the_pipeline_stands() -> None:
    told = (Record("task.started", 1, "t"), Record("task.new", 2, "t"))
    scene = given(TWO).when(Report("p", "one#1", 1, "w1", told, pipeline={"at": 1}))
    scene.then("step.started one", "task.started t")
    assert scene.decision.events[-1].payload == {"pipeline": {"at": 1}}
    assert scene.state.runs["one#1"].resume == {"pipeline": {"at": 1}}


def test_a_record_of_a_worker_whose_clock_is_ahead_is_no_later_than_its_report() -> None:
    scene = given(TWO)
    scene.when(done("one#1", records=(Record("task.started", scene.at + 86_400_000, "t"),)))
    assert max(event.timestamp for event in scene.decision.events) == scene.at


def test_the_time_of_events_never_goes_back_and_durations_are_unaffected() -> None:
    step = "- step: {}\n  spec: {{policy: {{lifecycle: {{deadline_s: 5}}}}}}\n  tool: {{kind: noop}}\n"
    limited = book(step.format("one") + "  next: two\n" + step.format("two"))
    scene = given(limited)
    last = scene.log[-1].timestamp
    scene.at -= 86_400_000
    scene.when(done("one#1"))
    assert {event.timestamp for event in scene.decision.events} == {last}
    assert scene.decision.timers == (("deadline:two#1", scene.at + 5_000),)
