"""The track of an execution: every value that its screen ever showed, by event.

A track is extended event by event, and an event adds only marks of what it touched. Law: the look-up at an event equals
`project` of the state after it; counters of long loops lag by less than 0.1 % of the items, and a thinned series is exact
at its marks. It keeps what a state does not: arcs taken and refused, pending dead letters, the times of step-runs. Tested in
tests/unit/engine/queries/test_track.py.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from noetl.engine.decision.builder import status_of
from noetl.engine.plan.plan import Plan
from noetl.engine.queries.moment import STATES, Moment, outcome, run_state, step_state, waiting_joins
from noetl.engine.state.dead_letters import LETTER_EVENTS, change_of
from noetl.engine.state.evolve import evolve
from noetl.engine.state.execution import Execution, Loop, StepRun
from noetl.model.events import SCHEMA_VERSION, Event
from noetl.model.letters import PENDING
from noetl.model.upcast import upcast

MOST_MARKS: Final = 2_000  # of a series; then every other one is dropped
MOST_TIMES: Final = 100_000  # of a track; then every other one is dropped
MOST_SPANS: Final = 50_000  # of a track; then the oldest ended ones are dropped
LOOP_MARKS: Final = 1_000  # of a loop's counters
JOIN_BASE: Final = 1_000_000  # of a join's value: arrived × base + needed
_MOST_ATTEMPTS: Final = 100  # of a step-run, and waits; the newest are kept
_STATE: Final = {name: index for index, name in enumerate(STATES)}
_ERRORS: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError)  # a malformed payload, as in the fold

Mark = tuple[int, int]  # an event, and its time in ms after the first event
Handler = Callable[["Track", Execution, Event], None]


class Series(Struct):
    """The values of one thing: each from its event on, until the next one."""

    seqs: array[int] = field(default_factory=lambda: array("q"))
    values: array[int] = field(default_factory=lambda: array("q"))

    def at(self, seq: int) -> int:
        """Return the value after an event; 0 before the first one."""
        place = bisect_right(self.seqs, seq)
        return self.values[place - 1] if place else 0

    @property
    def last(self) -> int:
        return self.values[-1] if self.values else 0

    def mark(self, seq: int, value: int) -> None:
        """Set the value from an event on."""
        if self.seqs and self.seqs[-1] == seq:
            self.values[-1] = value
            return
        self.seqs.append(seq)
        self.values.append(value)

    def thin(self) -> None:
        """Drop every other mark; the last one stays."""
        self.seqs, self.values = _halved(self.seqs), _halved(self.values)


def _halved(numbers: array[int]) -> array[int]:
    return numbers[(len(numbers) - 1) % 2 :: 2]


class Span(Struct):
    """A step-run in time; `attempts`, `waits` in ms after the first event."""

    run: str
    step: str
    scheduled: Mark
    role: str = "step"  # step, final, compensation, replay
    state: str = "scheduled"
    started: Mark | None = None
    ended: Mark | None = None
    worker: str = ""
    attempts: list[tuple[int, int | None, bool | None, str]] = []  # from, to, whether it succeeded, task
    waits: list[tuple[int, int | None, str]] = []  # from, to, cause: gate, join, signal, child, sleep, delay
    child: str | None = None  # the last child execution
    children: int = 0  # child executions that it started
    of: str | None = None  # the step-run that it compensates or retries
    after: str | None = None  # the step-run that sent its last token
    total: int | None = None  # items of its loop
    items_ended: int = 0
    items_failed: int = 0
    changed: int = 0  # the last event that touched it


class _Standing(Struct):
    step: str
    since: int
    seq: int
    by: str | None  # the step-run that sent it
    parked: bool = False


class Track:
    """Series by key, step-runs and times; only `extend` changes it.

    Keys: x status, s:STEP state, n:STEP tokens, j:STEP join, a:STEP#ARC taken, r:STEP#ARC refused, l:RUN ended and f:RUN failed
    items, d:STEP pending dead letters, c version of ctx.
    """

    def __init__(self, plan: Plan | None, most_marks: int = MOST_MARKS, most_times: int = MOST_TIMES) -> None:
        self.plan = plan
        self.seq = 0
        self.t0 = 0
        self.head_at = 0
        self.every = 1  # `times` has event 1, 1 + every, …
        self.times: array[int] = array("q")
        self.series: dict[str, Series] = {}
        self.spans: dict[str, Span] = {}
        self.dropped = 0  # spans
        self.thinned: set[str] = set()
        self._most_marks, self._most_times = most_marks, most_times
        self._standing: dict[str, _Standing] = {}
        self._joins: dict[str, tuple[int, int]] = {}
        self._marked: dict[str, tuple[int, int]] = {}  # loop → its counters at their last marks
        self._letters: dict[str, str] = {}  # pending letter → step
        self._known_letters: dict[str, str] = {}
        self._forced: tuple[str, str] = ("", "")  # step, decision
        self._mark(0, "x", _STATE["pending"])

    def extend(self, state: Execution, event: Event) -> None:
        """Add what an event touched; `state` is the state after it."""
        event = event if event.version >= SCHEMA_VERSION else upcast(event)
        if not self.seq:
            self.t0 = event.timestamp
        self.seq, self.head_at = event.seq, state.at
        if not (event.seq - 1) % self.every:
            self._add_time(state.at - self.t0)
        for handle in _HANDLERS.get(event.event_type, ()):
            try:
                handle(self, state, event)
            except _ERRORS:
                continue

    def marks_after(self, after: int) -> dict[str, tuple[list[int], list[int]]]:
        """Return the marks after an event, by key: their events, and their values."""
        found = {}
        for key, series in self.series.items():
            place = bisect_right(series.seqs, after) if after else 0
            if place < len(series.seqs):
                found[key] = (series.seqs[place:].tolist(), series.values[place:].tolist())
        return found

    def times_after(self, after: int) -> list[int]:
        """Return the times of the events after one, in ms after the first event."""
        return self.times[-(-after // self.every) :].tolist()

    def spans_after(self, after: int) -> list[Span]:
        """Return the step-runs that changed after an event, oldest first."""
        return [span for span in self.spans.values() if span.changed > after]

    def _add_time(self, ms: int) -> None:
        self.times.append(ms)
        if len(self.times) > self._most_times:
            self.times, self.every = self.times[::2], self.every * 2

    def _mark(self, seq: int, key: str, value: int) -> None:
        series = self.series.get(key)
        if series is None:
            if not value:
                return
            series = self.series[key] = Series()
        elif series.last == value:
            return
        series.mark(seq, value)
        if len(series.seqs) > self._most_marks:
            series.thin()
            self.thinned.add(key)

    def _count(self, seq: int, key: str, by: int = 1) -> None:
        series = self.series.get(key)
        self._mark(seq, key, (series.last if series is not None else 0) + by)

    def _touch(self, event: Event, run_id: str) -> Span | None:
        span = self.spans.get(run_id)
        if span is not None:
            span.changed = event.seq
        return span

    def _ms(self, event: Event) -> int:
        return event.timestamp - self.t0

    def status(self, state: Execution, event: Event) -> None:
        self._mark(event.seq, "x", _STATE.get(status_of(state), 0))

    def step(self, state: Execution, event: Event) -> None:
        self._set_step(state, event.seq, event.entity_id)

    def _set_step(self, state: Execution, seq: int, step: str) -> None:
        self._mark(seq, f"s:{step}", _STATE[step_state(state, step)])

    def tokens(self, state: Execution, event: Event) -> None:
        """Set the tokens at the steps where one came or went."""
        token_id, standing = event.entity_id, self._standing
        token = state.tokens.get(token_id)
        if token is not None and token_id not in standing:
            standing[token_id] = _Standing(token.step, self._ms(event), event.seq, event.step_run_id)
            self._count(event.seq, f"n:{token.step}")
        elif token is not None:
            standing[token_id].parked = bool(token.parked)
        else:
            self._remove_token(event, token_id)

    def _remove_token(self, event: Event, token_id: str) -> _Standing | None:
        gone = self._standing.pop(token_id, None)
        if gone is not None:
            self._count(event.seq, f"n:{gone.step}", -1)
        return gone

    def clear_tokens(self, state: Execution, event: Event) -> None:
        for token_id in [name for name in self._standing if name not in state.tokens]:
            self._remove_token(event, token_id)

    def joins(self, state: Execution, event: Event) -> None:
        """Set the joins whose siblings arrived, left or ended."""
        if not (self._joins or state.forks):
            return
        now, before = waiting_joins(self.plan, state), self._joins
        for step in {*now, *before}:
            if now.get(step) != before.get(step):
                arrived, needed = now.get(step, (0, 0))
                self._mark(event.seq, f"j:{step}", arrived * JOIN_BASE + needed)
        self._joins = now

    def arcs(self, _state: Execution, event: Event) -> None:
        """Count the arcs that a router took, and those it evaluated and refused."""
        taken = {int(arc) for arc in event.payload.get("taken", ())}
        looked = {int(arc["arc"]) for arc in event.payload.get("arcs", ())}
        for arc in sorted(taken | looked):
            self._count(event.seq, f"{'a' if arc in taken else 'r'}:{event.entity_id}#{arc}")

    def ctx(self, _state: Execution, event: Event) -> None:
        """Count the events that write to ctx."""
        if event.payload.get("writes") or event.event_type == "signal.received":
            self._count(event.seq, "c")

    def letters(self, state: Execution, event: Event) -> None:
        """Count the pending dead letters of a step."""
        change = change_of(state.path, event)
        if change is None:
            return
        if change.letter is not None:
            self._known_letters[change.message_id] = change.letter.step_id
        step = self._known_letters.get(change.message_id)
        was, is_pending = change.message_id in self._letters, change.status == PENDING
        if step is None or was == is_pending:
            return
        if is_pending:
            self._letters[change.message_id] = step
        else:
            del self._letters[change.message_id]
        self._count(event.seq, f"d:{step}", 1 if is_pending else -1)

    def scheduled(self, state: Execution, event: Event) -> None:
        """Add a step-run, or end the wait of a suspended one."""
        run_id, ms = str(event.step_run_id), self._ms(event)
        run = state.runs.get(run_id) or state.replays.get(run_id)
        if run is None:
            return
        span = self._touch(event, run_id)
        if span is not None:
            _close(span.waits, ms)
            span.state = run_state(run)
            return
        span = self._add_span(event, run)
        since = [gone for name in event.payload.get("tokens", ()) if (gone := self._remove_token(event, name))]
        if not since:
            return
        span.after = max(since, key=lambda one: one.seq).by
        first = min(one.since for one in since)
        if first < ms:
            span.waits.append((first, ms, "gate" if any(one.parked for one in since) else "join"))

    def _add_span(self, event: Event, run: StepRun) -> Span:
        of = run.compensates if run.of is None else str(run.of.get("run_id"))
        scheduled = (event.seq, self._ms(event))
        span = Span(run.run_id, run.step, scheduled, run.role, of=of, changed=event.seq)
        self.spans[run.run_id] = span
        if len(self.spans) > MOST_SPANS:
            oldest = next((name for name, one in self.spans.items() if one.ended is not None), None)
            if oldest is not None:
                del self.spans[oldest]
                self.dropped += 1
        return span

    def replayed(self, state: Execution, event: Event) -> None:
        run = state.replays.get(str(event.step_run_id))
        if run is not None:
            self._add_span(event, run)

    def started(self, state: Execution, event: Event) -> None:
        """Record the worker of a step-run, and its first start."""
        run_id = str(event.step_run_id)
        run, span = state.runs.get(run_id) or state.replays.get(run_id), self._touch(event, run_id)
        if run is None or span is None:
            return
        span.started = span.started or (event.seq, self._ms(event))
        span.worker = str(event.payload.get("worker") or span.worker)
        span.state = run_state(run)

    def suspended(self, state: Execution, event: Event) -> None:
        """Begin the wait of a step-run; items of a loop wait on their own."""
        run_id, payload = str(event.step_run_id), event.payload
        run, span = state.runs.get(run_id) or state.replays.get(run_id), self._touch(event, run_id)
        if run is None or span is None:
            return
        span.state = run_state(run)
        if run.loop is not None:
            return
        cause = "signal" if "signal" in payload else "child" if "child_id" in payload else str(payload["cause"])
        _close(span.waits, self._ms(event))
        span.waits = [*span.waits[1 - _MOST_ATTEMPTS :], (self._ms(event), None, cause)]
        span.child = payload.get("child_id") or span.child

    def woken(self, state: Execution, event: Event) -> None:
        """End the wait of a step-run that needs no worker any more."""
        run_id = str(event.step_run_id)
        run, span = state.runs.get(run_id), self._touch(event, run_id)
        if run is not None and span is not None and run.loop is None:
            _close(span.waits, self._ms(event))
            span.state = run_state(run)

    def child(self, _state: Execution, event: Event) -> None:
        """Count the children of a step-run."""
        span = self._touch(event, str(event.step_run_id))
        if span is not None:
            span.children += 1

    def attempt(self, _state: Execution, event: Event) -> None:
        """Record when attempts of tasks began and ended; not those of items."""
        span = None if event.iteration is not None else self._touch(event, str(event.step_run_id))
        if span is None:
            return
        ms, task = self._ms(event), str(event.task_run_id)
        if event.event_type.endswith(".started"):
            span.attempts = [*span.attempts[1 - _MOST_ATTEMPTS :], (ms, None, None, task)]
            return
        for place in reversed(range(len(span.attempts))):  # a task may run others
            since, until, _, name = span.attempts[place]
            if until is None and name == task:
                span.attempts[place] = (since, ms, event.event_type.endswith(".done"), task)
                return

    def ended(self, state: Execution, event: Event) -> None:
        """Record the end of a step-run, and what it means for the one it undoes."""
        run_id, ms, is_ok = str(event.step_run_id), self._ms(event), event.event_type == "step.done"
        span = self._touch(event, run_id)
        if span is None or span.ended is not None:
            return
        span.ended = (event.seq, ms)
        span.state = outcome(state, span.step, run_id) or ("done" if is_ok else "failed")
        if is_ok and self._forced == (span.step, _decision(event)):
            span.state = "forced"
        _close(span.waits, ms)
        span.attempts = [one if one[1] is not None else (one[0], ms, is_ok, one[3]) for one in span.attempts]
        if span.total is not None:
            self._mark(event.seq, f"l:{run_id}", span.items_ended)
            self._mark(event.seq, f"f:{run_id}", span.items_failed)
        if span.role == "compensation":
            self._undone(state, event, span)

    def _undone(self, state: Execution, event: Event, span: Span) -> None:
        undone = self._touch(event, str(span.of))
        if undone is not None:
            undone.state = outcome(state, undone.step, undone.run) or undone.state
        self._set_step(state, event.seq, str(span.of).rpartition("#")[0])

    def routed(self, state: Execution, event: Event) -> None:
        """Record the failure of a router: its step fails after all."""
        span = self._touch(event, str(event.step_run_id)) if event.payload.get("broken") else None
        if span is not None:
            span.state = outcome(state, span.step, span.run) or span.state

    def gated(self, state: Execution, event: Event) -> None:
        """Count what a gate says to tokens that come; parked ones have come before."""
        tokens = [state.tokens.get(str(name)) for name in event.payload.get("tokens", ())]
        if not any(token is not None and token.parked for token in tokens):
            self._count(event.seq, f"{'g' if event.payload.get('allow') else 'h'}:{event.entity_id}")

    def forced(self, _state: Execution, event: Event) -> None:
        self._forced = (event.entity_id, _decision(event))

    def loop(self, state: Execution, event: Event) -> None:
        """Set the counters of a running loop, at most at each thousandth of its items."""
        run_id = event.step_run_id or ""
        run = state.runs.get(run_id)
        loop = run.loop if run is not None else None
        if run is None or loop is None:
            return
        span = self.spans.get(run_id)
        if span is None:
            return
        self._count_items(event, span, loop)
        if loop.suspended or span.state == "suspended":
            span.state = run_state(run)
            self._set_step(state, event.seq, run.step)
            self.status(state, event)  # else items in flight keep it running

    def _count_items(self, event: Event, span: Span, loop: Loop) -> None:
        total, ended, failed = loop.total, loop.ended, loop.failed
        span.total, span.items_ended, span.items_failed, span.changed = total, ended, failed, event.seq
        marked, gap = self._marked.get(span.run, (0, 0)), 1 if total <= LOOP_MARKS else -(-total // LOOP_MARKS)
        if 0 <= ended - marked[0] < gap and 0 <= failed - marked[1] < gap and ended < total:
            return
        self._marked[span.run] = (ended, failed)
        self._mark(event.seq, f"l:{span.run}", ended)
        self._mark(event.seq, f"f:{span.run}", failed)

    def returned(self, _state: Execution, event: Event) -> None:
        """Record the end of a retried dead letter."""
        span = self._touch(event, str(event.step_run_id))
        if span is not None:
            span.ended = (event.seq, self._ms(event))
            span.state = "failed" if event.event_type == "dlq.returned" else "done"
            _close(span.waits, self._ms(event))

    def repaired(self, state: Execution, event: Event) -> None:
        """Record a repaired step-run or item where it failed."""
        of = str(event.payload["of"])
        span = self._touch(event, of)
        owner = state.runs.get(of)
        if owner is not None and owner.loop is not None:
            if span is not None:
                self._count_items(event, span, owner.loop)
        elif span is not None and event.event_type == "loop.item.repaired":
            span.items_failed -= 1
            self._mark(event.seq, f"f:{of}", state.partial.get(of, span.items_failed))
        if span is not None and span.ended is not None:
            span.state = outcome(state, span.step, of) or span.state
        if span is not None and span.role == "compensation":
            self._undone(state, event, span)
        self._set_step(state, event.seq, event.entity_id)


def _close(spells: list[tuple[int, int | None, str]], ms: int) -> None:
    if spells and spells[-1][1] is None:
        spells[-1] = (spells[-1][0], ms, spells[-1][2])


def _decision(event: Event) -> str:
    """Return what the events of one decision share."""
    return event.event_id.rpartition(".")[0]


_MOVES: Final = (Track.status, Track.joins)
_ITEM: Final = (Track.loop,)
_HANDLERS: dict[str, tuple[Handler, ...]] = {
    **dict.fromkeys(("playbook.execution.requested", "playbook.started", "execution.queued"), (Track.status,)),
    **dict.fromkeys(("execution.admitted", "playbook.paused", "playbook.resumed"), (Track.status,)),
    **dict.fromkeys(("workflow.finished", "playbook.corrected", "child.finished"), (Track.status,)),
    "execution.cancelled": _MOVES,
    "playbook.finished": (Track.clear_tokens, *_MOVES),
    **dict.fromkeys(("token.created", "token.parked", "token.absorbed"), (Track.tokens, *_MOVES)),
    "step.scheduled": (Track.scheduled, Track.step, *_MOVES),
    "step.started": (Track.started, Track.step, Track.status),
    "child.started": (Track.child,),
    "step.suspended": (Track.suspended, Track.step, Track.status, *_ITEM),
    "step.woken": (Track.woken, Track.step, Track.status, *_ITEM),
    "step.done": (Track.ended, Track.step, *_MOVES),
    "step.failed": (Track.letters, Track.ended, Track.step, *_MOVES),
    "step.forced": (Track.forced,),
    "policy.admit.evaluated": (Track.gated,),
    "next.evaluated": (Track.letters, Track.arcs, Track.routed, Track.step, *_MOVES),
    **dict.fromkeys(("task.started", "task.attempt.started", "task.attempt.done"), (Track.attempt,)),
    **dict.fromkeys(("task.attempt.failed", "task.done", "task.failed"), (Track.attempt,)),
    **dict.fromkeys(("ctx.patched", "signal.received"), (Track.ctx,)),
    **dict.fromkeys(("loop.started", "loop.claim.scheduled", "loop.claim.recorded", "loop.claim.done"), _ITEM),
    "loop.iteration.scheduled": _ITEM,
    "loop.iteration.done": (Track.ctx, *_ITEM),
    "loop.iteration.failed": (Track.letters, Track.ctx, *_ITEM),
    "dlq.replayed": (Track.letters, Track.replayed, Track.status),
    "dlq.returned": (Track.letters, Track.returned, Track.status),
    "step.repaired": (Track.letters, Track.returned, Track.repaired, Track.status),
    "loop.item.repaired": (Track.letters, Track.returned, Track.ctx, Track.repaired, Track.status),
    **dict.fromkeys(("dlq.discarded", "message.poisoned", "message.released", "message.settled"), (Track.letters,)),
}
assert _HANDLERS.keys() >= LETTER_EVENTS


def extend(track: Track, state: Execution, event: Event) -> None:
    """Apply an event to a state, and add what it touched to the track."""
    track.extend(evolve(state, event), event)


def build(plan: Plan | None, execution_id: str, events: Iterable[Event]) -> Track:
    """Return the track of a log."""
    track, state = Track(plan), Execution(execution_id)
    for event in events:
        extend(track, state, event)
    return track


def lookup(track: Track, seq: int) -> Moment:
    """Return the moment after an event, from the marks alone."""
    return Moment(
        status=STATES[track.series["x"].at(seq)],
        steps={name: STATES[value] for name, value in _values(track, "s:", seq)},
        tokens=dict(_values(track, "n:", seq)),
        joins={name: divmod(value, JOIN_BASE) for name, value in _values(track, "j:", seq)},
        ended=dict(_values(track, "l:", seq)),
        failed=dict(_values(track, "f:", seq)),
    )


def _values(track: Track, prefix: str, seq: int) -> Iterator[tuple[str, int]]:
    for key, series in track.series.items():
        value = series.at(seq) if key.startswith(prefix) else 0
        if value:
            yield key.removeprefix(prefix), value
