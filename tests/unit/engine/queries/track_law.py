"""The law of tracks: a look-up at any event equals the projection of the fold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from noetl.engine.plan.plan import Plan
from noetl.engine.queries.moment import Moment, project
from noetl.engine.queries.projections import Recorded
from noetl.engine.queries.track import LOOP_MARKS, Track, extend, lookup
from noetl.engine.state.evolve import evolve
from noetl.engine.state.execution import Execution
from noetl.engine.state.writes import plain
from noetl.model.events import Event
from noetl.model.letters import PENDING

_NO_BOUND = 1 << 30  # of marks: what thinning does is tested apart


def holds(plan: Plan | None, execution_id: str, events: Sequence[Event]) -> Track:
    """Check the law at every event, and what a state does not keep against the events."""
    track, state, recorded = Track(plan, most_marks=_NO_BOUND), Execution(execution_id), Recorded()
    for event in events:
        extend(track, state, event)
    state = Execution(execution_id)
    arcs, version = Counter[str](), 0
    ctx: dict[str, Any] = {}
    _compare(track, 0, project(plan, state), {})
    for event in events:
        evolve(state, event)
        _compare(track, event.seq, project(plan, state), _totals(state))
        arcs.update(_routed(event))
        recorded.note((event,))
        counted = {key: series.at(event.seq) for key, series in track.series.items()}
        assert {key: value for key, value in counted.items() if key[:2] in ("a:", "r:") and value} == dict(arcs)
        letters = Counter(f"d:{one.step_id}" for one in recorded.letters.values() if one.status == PENDING)
        assert {key: value for key, value in counted.items() if key[:2] == "d:" and value} == dict(letters)
        assert counted.get("c", 0) > version or plain(state.ctx) == ctx, f"event {event.seq} changed ctx"
        ctx, version = plain(state.ctx), counted.get("c", 0)
        assert track.t0 + track.times[event.seq - 1] == state.at
    _check_spans(track, state, events)
    _check_parts(plan, execution_id, events, track)
    return track


def _compare(track: Track, seq: int, expected: Moment, totals: dict[str, int]) -> None:
    found = lookup(track, seq)
    for run_id, exact in expected.ended.items():
        lag = exact - found.ended.get(run_id, 0)
        assert 0 <= lag < max(1.0, totals[run_id] / LOOP_MARKS), (seq, run_id, lag)
    for run_id, exact in expected.failed.items():
        lag = abs(exact - found.failed.get(run_id, 0))
        assert lag < max(1.0, totals.get(run_id, 0) / LOOP_MARKS), (seq, run_id, lag)
    counters = {"ended": expected.ended, "failed": expected.failed}  # checked above: ended loops keep theirs
    assert replace(found, **counters) == expected, f"event {seq}"


def _totals(state: Execution) -> dict[str, int]:
    return {run.run_id: run.loop.total for run in state.runs.values() if run.loop is not None}


def _routed(event: Event) -> list[str]:
    """Return the arcs that an event took and refused, as keys of a track."""
    if event.event_type != "next.evaluated":
        return []
    taken = event.payload["taken"]
    refused = {arc["arc"] for arc in event.payload["arcs"] if arc["arc"] not in taken}
    return [f"a:{event.entity_id}#{arc}" for arc in taken] + [f"r:{event.entity_id}#{arc}" for arc in refused]


def _check_spans(track: Track, state: Execution, events: Sequence[Event]) -> None:
    """Check that every step-run has its span, and that only open ones are open."""
    begun = {event.step_run_id: event.seq for event in reversed(events) if event.event_type in _BEGIN}
    assert {name: span.scheduled[0] for name, span in track.spans.items()} == begun
    in_flight = {name for name, run in {**state.runs, **state.replays}.items() if run.phase != "routing"}
    assert {name for name, span in track.spans.items() if span.ended is None} == in_flight
    for span in track.spans.values():
        if span.ended is not None:
            assert span.state in _ENDS, span
            assert None not in [one[1] for one in (*span.waits, *span.attempts)], span


_BEGIN = ("step.scheduled", "dlq.replayed")
_ENDS = {"done", "failed", "cancelled", "partial", "undone", "repaired", "forced"}


def _check_parts(plan: Plan | None, execution_id: str, events: Sequence[Event], track: Track) -> None:
    """Check that what was known at an event and what changed after it are the whole."""
    middle = len(events) // 2
    early, state = Track(plan, most_marks=_NO_BOUND), Execution(execution_id)
    for event in events[:middle]:
        extend(early, state, event)
    marks = {key: (list(series.seqs), list(series.values)) for key, series in early.series.items()}
    for key, (seqs, values) in track.marks_after(middle).items():
        known = marks.setdefault(key, ([], []))
        marks[key] = (known[0] + seqs, known[1] + values)
    assert marks == track.marks_after(0)
    assert early.times.tolist() + track.times_after(middle) == track.times_after(0)
    spans = {**early.spans, **{span.run: span for span in track.spans_after(middle)}}
    assert spans == track.spans
