"""Two executions side by side: steps, arcs, and the first decision that differs.

Reads two tracks, so its cost follows what they show, not the number of events. Decisions are compared router by router and
gate by gate: the n-th one of a step here with the n-th one there, since branches that run at once have no order. Of a gate,
what it said first to the tokens that came counts. Tested in tests/unit/engine/queries/history/test_compare.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from noetl.engine.plan.plan import Plan
from noetl.engine.queries.moment import STATES
from noetl.engine.queries.track import Span, Track
from noetl.model.events import Event


class StepSide(Struct, frozen=True):
    """A step of one execution; an empty state: it was not reached."""

    state: str = ""
    runs: int = 0
    attempts: int = 0  # of its tasks, in all its step-runs; without those of items
    duration_ms: int | None = None  # of all its step-runs, from their starts to their ends


class StepPair(Struct, frozen=True):
    """A step in both executions."""

    step: str
    this: StepSide
    other: StepSide
    differs: bool  # in state, runs or attempts


class ArcSide(Struct, frozen=True):
    """An arc of one execution; an empty target: not in its playbook."""

    target: str = ""
    taken: int = 0
    refused: int = 0  # evaluated, and not taken


class ArcPair(Struct, frozen=True):
    """An arc that was taken more often in one execution."""

    source: str
    arc: int
    this: ArcSide
    other: ArcSide


class Split(Struct, frozen=True):
    """The first decision of a router or a gate after which two executions differ."""

    step: str
    number: int  # of the router's or the gate's decisions, from 1
    seq: int  # its event
    other_seq: int
    arc: int  # the first arc that only one of them took; -1 of a gate


class Comparison(Struct, frozen=True):
    """What two executions did differently."""

    steps: list[StepPair]  # that one of them reached
    arcs: list[ArcPair]  # that differ
    split: Split | None
    unaligned: list[str]  # steps whose routers or gates decided too often to be compared one by one


class Looked(Struct, frozen=True):
    """An arc that a router looked at, with the values that its condition read."""

    arc: int
    target: str
    when: str | None  # None: it has no condition
    holds: bool
    taken: bool
    read: Mapping[str, Any] | None
    error: str | None


class Gated(Struct, frozen=True):
    """What a gate said to the tokens that came, with the values that it read."""

    admits: bool
    when: str  # the rule that matched, else those that admit; empty: not known, or without a condition
    read: Mapping[str, Any]
    errors: list[str]


class Decided(Struct, frozen=True):
    """A decision of a router or a gate, as its event tells it."""

    seq: int
    at: int
    run: str
    event: str  # after which it decided: step.done, step.failed, loop.done
    arcs: list[Looked]
    gate: Gated | None = None


def compare(this: Track, other: Track) -> Comparison:
    """Compare two executions by their tracks."""
    split, unaligned = _split(this, other)
    return Comparison(_steps(this, other), _arcs(this, other), split, unaligned)


def decided(event: Event, plan: Plan | None = None) -> Decided:
    """Return the decision of a router, with each arc as seen last, or of a gate."""
    payload = event.payload
    taken = {int(arc) for arc in payload.get("taken", ())}
    arcs = {int(arc["arc"]): arc for arc in payload.get("arcs", ())}
    return Decided(
        seq=event.seq,
        at=event.timestamp,
        run=str(event.step_run_id or event.entity_id),
        event=str(payload.get("event", "")),
        arcs=[_looked(number, arc, number in taken) for number, arc in sorted(arcs.items())],
        gate=_gated(event, plan) if event.event_type == "policy.admit.evaluated" else None,
    )


def _gated(event: Event, plan: Plan | None) -> Gated:
    step = plan.playbook.step(event.entity_id) if plan is not None else None
    rules, matched = (step.admit or () if step is not None else ()), event.payload.get("rule")
    shown = rules[matched : matched + 1] if matched is not None else [rule for rule in rules if rule.allow]
    return Gated(
        admits=bool(event.payload.get("allow")),
        when=" or ".join(str(rule.when.data) for rule in shown if rule.when is not None),
        read=event.payload.get("read") or {},
        errors=[str(error) for error in event.payload.get("errors", ())],
    )


def _looked(number: int, arc: Mapping[str, Any], is_taken: bool) -> Looked:
    when, read, error = arc.get("when"), arc.get("read"), arc.get("error")
    return Looked(
        arc=number,
        target=str(arc.get("step", "")),
        when=None if when is None else str(when),
        holds=bool(arc.get("matched")),
        taken=is_taken,
        read=read if isinstance(read, Mapping) else None,
        error=None if error is None else str(error),
    )


def _steps(this: Track, other: Track) -> list[StepPair]:
    sides = [_sides(this), _sides(other)]
    pairs = []
    for step in _ordered((this, other), {*sides[0], *sides[1]}):
        one, two = (side.get(step, StepSide()) for side in sides)
        differs = (one.state, one.runs, one.attempts) != (two.state, two.runs, two.attempts)
        pairs.append(StepPair(step, one, two, differs))
    return pairs


def _ordered(tracks: Sequence[Track], found: set[str]) -> list[str]:
    """Return steps as the playbooks list them, then as they were reached."""
    known = [step.name for track in tracks if track.plan is not None for step in track.plan.playbook.workflow]
    reached = [key.removeprefix("s:") for track in tracks for key in track.series if key.startswith("s:")]
    return [name for name in dict.fromkeys((*known, *reached)) if name in found]


def _sides(track: Track) -> dict[str, StepSide]:
    spans: dict[str, list[Span]] = {}
    for span in track.spans.values():
        if span.role != "replay":
            spans.setdefault(span.step, []).append(span)
    made = {}
    for key, series in track.series.items():
        if key.startswith("s:"):
            step = key.removeprefix("s:")
            made[step] = _side(STATES[series.last], spans.get(step, []), track.head_at - track.t0)
    return made


def _side(state: str, spans: Sequence[Span], head: int) -> StepSide:
    begun = [span for span in spans if span.started is not None or span.ended is not None]
    took = sum((span.ended or (0, head))[1] - (span.started or span.scheduled)[1] for span in begun)
    return StepSide(state, len(spans), sum(len(span.attempts) for span in spans), took if begun else None)


def _arcs(this: Track, other: Track) -> list[ArcPair]:
    counts = [_counts(this), _counts(other)]
    pairs = []
    for source, arc in sorted({*counts[0], *counts[1]}):
        one, two = (
            ArcSide(_target(track.plan, source, arc), *side.get((source, arc), (0, 0)))
            for track, side in zip((this, other), counts, strict=True)
        )
        if one.taken != two.taken:
            pairs.append(ArcPair(source, arc, one, two))
    return pairs


def _counts(track: Track) -> dict[tuple[str, int], tuple[int, int]]:
    """Return how often each arc was taken and refused."""
    return {
        name: (_last(track, "a", name), _last(track, "r", name))
        for name in {_arc_of(key) for key in track.series if key.startswith(("a:", "r:"))}
    }


def _last(track: Track, mark: str, name: tuple[str, int]) -> int:
    series = track.series.get(f"{mark}:{name[0]}#{name[1]}")
    return 0 if series is None else series.last


def _arc_of(key: str) -> tuple[str, int]:
    source, _, arc = key[2:].rpartition("#")
    return source, int(arc)


def _target(plan: Plan | None, source: str, arc: int) -> str:
    """Return where an arc leads, or an empty text if that is not known."""
    step = plan.playbook.step(source) if plan is not None else None
    arcs = step.arcs if step is not None else ()
    return arcs[arc].step if 0 <= arc < len(arcs) else ""


def _split(this: Track, other: Track) -> tuple[Split | None, list[str]]:
    found: list[Split] = []
    unaligned: set[str] = set()
    for marks in (("a:", "r:"), ("g:", "h:")):
        mine, theirs = _decisions(this, marks), _decisions(other, marks)
        thinned = {_of(key)[0] for track in (this, other) for key in track.thinned if key.startswith(marks)}
        unaligned |= thinned & mine.keys() & theirs.keys()
        for step in mine.keys() & theirs.keys() - thinned:
            pairs = zip(mine[step].items(), theirs[step].items(), strict=False)
            for number, ((seq, one), (other_seq, two)) in enumerate(pairs, 1):
                arc = _differs(this.plan, other.plan, step, one, two)
                if arc is not None:
                    found.append(Split(step, number, seq, other_seq, arc))
                    break
    return min(found, key=lambda split: split.seq, default=None), sorted(unaligned)


def _of(key: str) -> tuple[str, int]:
    """Return the step and the arc of a mark; -1: it is of its gate."""
    return _arc_of(key) if key.startswith(("a:", "r:")) else (key[2:], -1)


def _decisions(track: Track, marks: tuple[str, str]) -> dict[str, dict[int, set[int]]]:
    """Return the decisions of each step in their order: event, and the arcs it took.

    `marks` are those of what was taken, and of what was refused; a gate that admits takes the arc -1.
    """
    found: dict[str, dict[int, set[int]]] = {}
    for key, series in track.series.items():
        if key.startswith(marks):
            source, arc = _of(key)
            for seq in series.seqs:
                taken = found.setdefault(source, {}).setdefault(seq, set())
                if key.startswith(marks[0]):
                    taken.add(arc)
    return {source: dict(sorted(made.items())) for source, made in found.items()}


def _differs(mine: Plan | None, theirs: Plan | None, step: str, one: set[int], two: set[int]) -> int | None:
    """Return the first arc that only one took; arcs to one step are the same."""
    here = {_target(mine, step, arc) or str(arc): arc for arc in sorted(one, reverse=True)}
    there = {_target(theirs, step, arc) or str(arc): arc for arc in sorted(two, reverse=True)}
    only = [here.get(name, there.get(name, 0)) for name in here.keys() ^ there.keys()]
    return min(only, default=None)
