"""What must hold of every log, whatever happened while it was written."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from noetl.engine.decision.builder import is_blocked
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution, checksum
from noetl.model.events import Event
from noetl.ports import DerivedRows

ENDS = ("step.done", "step.failed")


def check_all(execution_id: str, events: list[Event], beside: DerivedRows, live: Execution | None = None) -> None:
    """Hold a log to every invariant."""
    state = fold(execution_id, events)
    assert [event.seq for event in events] == list(range(1, len(events) + 1)), "the log has gaps"
    assert len({event.event_id for event in events}) == len(events), "an event was written twice"
    if live is not None:
        assert checksum(state) == checksum(live), "replay is not live"
    tokens_accounted_for(events, state)
    runs_end_once(events, state)
    items_conserved(events)
    ended_means_quiescent(state, beside)


def tokens_accounted_for(events: list[Event], state: Execution) -> None:
    """Every created token was taken by one run, absorbed once, or still exists."""
    gone: Counter[str] = Counter()
    created = [event.entity_id for event in events if event.event_type == "token.created"]
    for event in events:
        if event.event_type == "step.scheduled":
            gone.update(event.payload.get("tokens", ()))
        elif event.event_type == "token.absorbed":
            gone[event.entity_id] += 1
    assert len(created) == len(set(created)), "a token was created twice"
    assert all(count == 1 for count in gone.values()), f"tokens were taken twice: {gone}"
    assert set(created) == gone.keys() | state.tokens.keys(), "a token was lost"
    assert not gone.keys() & state.tokens.keys(), "a token is both taken and there"


def runs_end_once(events: list[Event], state: Execution) -> None:
    """Every step-run ends once, or is in flight."""
    replays = {str(event.step_run_id) for event in events if event.event_type == "dlq.replayed"}
    scheduled = {str(event.step_run_id) for event in events if event.event_type == "step.scheduled"} - replays
    ends = Counter(str(event.step_run_id) for event in events if event.event_type in ENDS)
    assert all(count == 1 for count in ends.values()), f"runs ended twice: {ends}"
    assert ends.keys() <= scheduled, "a run ended that was never scheduled"
    in_flight = {run.run_id for run in state.runs.values() if run.phase != "routing"}
    assert scheduled == ends.keys() | in_flight, "a run was lost"
    routed = Counter(str(event.step_run_id) for event in events if event.event_type == "next.evaluated")
    assert all(count == 1 for count in routed.values()), "a router spoke twice"


def items_conserved(events: list[Event]) -> None:
    """Every item of a finished loop ended once; of a failed loop, at most once."""
    items: dict[str, Counter[int]] = defaultdict(Counter)
    totals = {str(event.step_run_id): event.payload["total"] for event in events if event.event_type == "loop.started"}
    for event in events:
        if event.event_type == "loop.claim.recorded":  # of a cursor, which does not know its total before
            totals[str(event.step_run_id)] += len(event.payload["rows"])
        if event.event_type in ("loop.iteration.done", "loop.iteration.failed"):
            items[str(event.step_run_id)][int(event.iteration or 0)] += 1
    for run, found in items.items():
        assert all(count == 1 for count in found.values()), f"items of {run} ended twice: {found}"
    for event in events:
        if event.event_type == "loop.done":
            run = str(event.step_run_id)
            assert set(items[run]) == set(range(totals[run])), f"items of {run} were lost"
            stats = event.payload["stats"]
            assert stats["total"] == stats["succeeded"] + stats["failed"] + stats["skipped"] == totals[run]


def ended_means_quiescent(state: Execution, beside: DerivedRows) -> None:
    """An execution has ended exactly if nothing is left; else something can move it."""
    quiescent = not state.tokens and not state.runs
    if state.phase == "ended":
        assert quiescent, f"it ended with {list(state.tokens)} and {list(state.runs)}"
        assert not beside.work, "work is left of an execution that has ended"
        assert not beside.timers, "timers are left of an execution that has ended"
        assert not state.children, "children are left of an execution that has ended"
        return
    assert not quiescent, "nothing is left of an execution that has not ended"
    stalled = not state.runs and bool(state.tokens)
    assert (state.status == "waiting") == (stalled and not state.paused)
    assert is_blocked(state), f"it rests though something could move it: {state.status}"
    assert not beside.work, "work is queued of an execution that rests"


def effects_happened(logs: Mapping[str, list[Event]], effects: Counter[tuple[str, int]], *, calm: bool) -> None:
    """What the log says was done was done; where nothing went wrong, it was done once."""
    known = {key for key, _ in effects}
    for events in logs.values():
        waited = {event.step_run_id for event in events if event.event_type == "step.suspended"}  # no tool did that
        done = [event for event in events if event.event_type == "task.done" and event.step_run_id not in waited]
        assert {str(event.task_run_id) for event in done} <= known, "a task is done that never ran"
    if calm:
        assert all(count == 1 for count in effects.values()), f"work was done twice without a reason: {effects}"
