"""Explains why an execution waits: for what, since when, and what would move it.

Reads a state and its events. The command prints it. Tested in tests/unit/engine/queries/test_explain.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from noetl.engine.decision.builder import signals_read
from noetl.engine.decision.work import work_id
from noetl.engine.plan.plan import Plan
from noetl.engine.queries.deadlines import Deadline, Underway, deadlines
from noetl.engine.queries.decisions import expects_decision, gate_expects_decision
from noetl.engine.queries.history.past import Past, past
from noetl.engine.routing.join import Meeting, meetings
from noetl.engine.routing.slots import renewed
from noetl.engine.state.dead_letters import letter_id
from noetl.engine.state.execution import Execution, StepRun, Suspended, Token
from noetl.engine.state.lineage import left_alone
from noetl.model.events import Event
from noetl.model.letters import PENDING
from noetl.model.work import Line

Cause = Literal[
    "signal", "gate", "join", "child", "sleep", "delay", "worker", "room", "paused", "items", "work", "message"
]


class Refs(Struct, frozen=True, omit_defaults=True):
    """What a cause refers to, for programs."""

    signal: str | None = None
    child: str | None = None  # an execution
    pool: str | None = None  # whose workers are missing; empty: the default pool
    worker: str | None = None
    steps: tuple[str, ...] = ()  # of a join: the steps from which others can still arrive
    letter: str | None = None  # a dead letter
    limits: tuple[str, ...] = ()  # that are reached: max_parallel, concurrency, rate, `kind http`, `pool gpu`


class Standing(Struct, frozen=True):
    """Something that has not ended, and what it waits for; times in epoch ms."""

    what: str  # token, run, item, child, message, execution
    name: str
    step: str
    waits_for: str
    moved_by: str
    since: int
    until: int | None = None
    read: Mapping[str, Any] | None = None  # the values that the last decision on it read
    deadlines: tuple[Deadline, ...] = ()  # every time-out that applies, earliest first
    signal: str | None = None  # the signal that moves it, if its name is known
    decision: bool = False  # the playbook reads `approved` of that signal
    answered_by: str | None = None  # who or what may send it
    cause: Cause = "work"  # what it waits for, as one word
    refs: Refs = Refs()
    arrived: int | None = None  # of a join: tokens that are there; of a loop: items that have ended
    needed: int | None = None  # of a join: tokens that it needs; of a loop: its items, if known


class Choice(Struct, frozen=True):
    """A past decision, with its reasons."""

    seq: int
    at: int
    step: str
    decided: str
    because: tuple[str, ...] = ()


Pools = Sequence[Mapping[str, Any]]


def standings(
    plan: Plan,
    state: Execution,
    events: Sequence[Event] | Past,
    pools: Pools | None = None,
    now: int = 0,
    line: Line | None = None,
) -> tuple[Standing, ...]:
    """Return everything in the execution that has not ended, oldest first.

    `events` are those of its log, or what was collected from them. `pools` are groups of workers, if known: {pool, tags,
    workers, idle_since}; `idle_since` is when the last worker of an empty group was seen. `line` is where the execution
    stands in the queue, if known.
    """
    known = events if isinstance(events, Past) else past(events)
    times = known.times
    lacks = (
        {run.run_id: unroutable(plan, state, run, pools, now) for run in state.runs.values()}
        if pools is not None
        else {}
    )
    waiting = [*_queued(plan, state, known, line or Line())]
    if not waiting:  # else its tokens and runs are those of a fork that waits
        waiting = [*_tokens(plan, state, times, known.broken)]
        waiting += _runs(plan, state, times, known.workers, lacks, line or Line())
    waiting += [*_children(state, known), *_messages(state, known)]
    underway = known.underway.now()
    timed = (_timed(plan, state, standing, underway) for standing in waiting)
    return tuple(sorted(timed, key=lambda standing: standing.since))


def _timed(plan: Plan, state: Execution, standing: Standing, underway: Underway) -> Standing:
    name, _, index = standing.name.removesuffix("]").partition("[")
    run = state.runs.get(name)
    under = deadlines(plan, state, run, underway, int(index) if standing.what == "item" else None)
    until = _earlier(standing.until, under[0].at if under else None)
    return replace(standing, deadlines=under, until=until)


def choices(events: Iterable[Event]) -> tuple[Choice, ...]:
    """Return what gates and routers decided, and on which values."""
    readers = {
        "next.evaluated": _routed,
        "policy.admit.evaluated": _admitted,
        "policy.task.evaluated": _judged,
        "execution.repaired": _repaired,
        "message.poisoned": _poisoned,
    }
    made = (readers[event.event_type](event) for event in events if event.event_type in readers)
    return tuple(choice for choice in made if choice is not None)


def values(read: Mapping[str, Any] | None) -> str:
    """Format the values that a condition read on one line."""
    return ", ".join(f"{path} = {_short(value)}" for path, value in (read or {}).items())


def _tokens(plan: Plan, state: Execution, times: Mapping[int, int], broken: Mapping[str, str]) -> Iterator[Standing]:
    for token in state.tokens.values():
        if token.parked:
            yield _parked(plan, state, token, times, broken.get(token.token_id))
    for meeting in meetings(plan, state):
        yield from _joining(plan, state, meeting, times)


def _parked(plan: Plan, state: Execution, token: Token, times: Mapping[int, int], broken: str | None) -> Standing:
    rules = plan.step(token.step).admit or ()
    wanted = [str(rule.when.data) for rule in rules if rule.allow and rule.when is not None]
    waits = f"the gate of `{token.step}` to open" + (f": {' or '.join(wanted)}" if wanted else "")
    waits += f"; a condition of it cannot be evaluated: {broken}" if broken else ""
    moved = "a change of `ctx` that the gate reads, the end of a step, or a signal"
    since = times.get(token.parked, state.started_at)
    standing = Standing("token", token.token_id, token.step, waits, moved, since, _end(state), token.gate, cause="gate")
    names = signals_read(token)
    if len(names) == 1:
        return _answerable(state, standing, names[0], gate_expects_decision(plan, token.step, names[0]))
    if any("signal" in text for text in wanted):
        moved = f"a signal: `noetl signal {state.execution_id} NAME`"
        moved += f", where NAME is {' or '.join(names)}" if names else ""
        return replace(standing, moved_by=moved, answered_by=_senders(state))
    return standing


def _answerable(state: Execution, standing: Standing, signal: str, decides: bool) -> Standing:
    """Return what waits for a signal, with the commands that send it."""
    execution, sending = state.execution_id, f"`noetl signal {state.execution_id} {signal} [JSON]`"
    moved = f"`noetl approve {execution}` or `noetl reject {execution}`; {sending} sends other data"
    return replace(
        standing,
        moved_by=moved if decides else sending,
        signal=signal,
        decision=decides,
        answered_by=_senders(state),
        cause="signal",
        refs=Refs(signal=signal),
    )


def _senders(state: Execution) -> str:
    if state.pool.startswith("local:"):
        return "any process that can write this store"
    return "any caller with the role operator, editor or admin"


def _joining(plan: Plan, state: Execution, meeting: Meeting, times: Mapping[int, int]) -> Iterator[Standing]:
    missing = sorted(_describe(state, carrier) for carrier in meeting.missing)
    cause: Cause = "join"
    refs = Refs(steps=tuple(sorted({_step_of(state, carrier) for carrier in meeting.missing})))
    if missing:
        waits = f"its siblings at the join of `{meeting.step}`: {', '.join(missing)} can still arrive"
        if meeting.needed:
            waits += f" ({meeting.arrived} of {meeting.needed} are there)"
        moved = "their arrival, or their end"
    elif state.paused:
        waits, moved, cause = "the execution to be unpaused", f"`noetl unpause {state.execution_id}`", "paused"
    else:
        cause, refs = "room", Refs(limits=("max_parallel",))
        bound = plan.setting("max_parallel")
        most = "no more" if bound is None else f"{bound}"  # the bound is the server's, and unknown here
        waits, moved = f"room: `max_parallel` allows {most} step-runs at once", "a step-run that ends"
    for token in meeting.tokens:
        since = times.get(token.seq, state.started_at)
        standing = Standing(
            "token", token.token_id, meeting.step, waits, moved, since, _end(state), cause=cause, refs=refs
        )
        needed = meeting.needed or len(meeting.tokens) + len(meeting.missing)  # all that can still arrive
        arrived = meeting.arrived or len(meeting.tokens)
        yield replace(standing, arrived=arrived, needed=needed) if cause == "join" else standing


def _step_of(state: Execution, carrier: str) -> str:
    token = state.tokens.get(carrier)
    return token.step if token is not None else carrier.rpartition("#")[0]


def _describe(state: Execution, carrier: str) -> str:
    token = state.tokens.get(carrier)
    return f"the token at `{token.step}`" if token is not None else f"`{carrier}`"


def unroutable(plan: Plan, state: Execution, run: StepRun, pools: Pools, now: int) -> str | None:
    """Return why no worker can take a run's work; None if one can."""
    name, tags = state.pool or run.pool, set(plan.steps[run.step].requires)
    groups = [group for group in pools if str(group.get("pool", "")) == name]
    if any(group.get("workers") and tags <= set(group.get("tags") or ()) for group in groups):
        return None
    prefix = f"pool {name or '(default)'}: "
    others = sum(int(group.get("workers") or 0) for group in groups)
    if others:
        return prefix + f"none of its {others} workers has the tags {', '.join(sorted(tags))}"
    seen = [int(group["idle_since"]) for group in groups if group.get("idle_since")]
    with_tags = f" with the tags {', '.join(sorted(tags))}" if tags else ""
    return prefix + f"no worker{with_tags}" + (f" for {_span(now - max(seen))}" if seen else "")


def _span(ms: int) -> str:
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= size:
            return f"{ms // size} {unit}"
    return f"{max(0, ms) // 1000} s"


def _queued(plan: Plan, state: Execution, known: Past, line: Line) -> Iterator[Standing]:
    """Yield an execution that a limit of its playbook or server keeps waiting."""
    if state.phase != "queued" or state.slot is None:
        return
    slot = renewed(state.slot, plan, state) or state.slot
    place = f" (place {line.position} in line)" if line.position else ""
    by = line.held_by or str(slot.get("by") or ("limit" if slot.get("limit") else "rate"))
    since = state.started_at if known.queued_at is None else known.queued_at
    if by == "above" or (by == "limit" and slot.get("server")):
        above = slot.get("above") or slot
        waits = f"the server's limit of {above['limit']} running executions of {above['group']!r}{place}"
        moved = "the end of one of them"
    elif by == "limit":
        running = f": {', '.join(line.running[:5])}" if line.running else ""
        waits = f"the limit of {slot['limit']} running executions with the concurrency key {slot['group']!r}{place}"
        moved = f"the end of one of them{running}"
    else:
        rate = slot["rate"]
        waits = f"the rate of {rate['per_second']:g} executions per second with the key {rate['group']!r}{place}"
        moved = "the time"
    if state.paused:
        waits, moved = "the execution to be unpaused", f"`noetl unpause {state.execution_id}`"
    until = line.turn_at or None if by == "rate" and not state.paused else None
    refs = Refs() if state.paused else Refs(limits=(by if by == "rate" else "concurrency",))
    cause: Cause = "paused" if state.paused else "room"
    yield Standing("execution", state.execution_id, "", waits, moved, since, until, cause=cause, refs=refs)


def _runs(
    plan: Plan,
    state: Execution,
    times: Mapping[int, int],
    workers: Mapping[str, str],
    lacks: Mapping[str, str | None],
    line: Line,
) -> Iterator[Standing]:
    for run in state.runs.values():
        until = _end(state, run) if state.review is None else None
        if state.review is not None and run.phase != "routing":
            yield _reviewed(state, state.review, run)
        elif run.loop is not None:
            yield from _loop(plan, state, run, times, until, lacks.get(run.run_id), line)
        elif run.suspended is not None:
            yield _held(plan, state, run, run.suspended, times, until)
        elif run.phase == "started":
            who = workers.get(run.run_id, "")
            waits = "its work to end on worker" + (f" {who}" if who else "")
            moved = "the worker's report, or the expiry of its lease if the worker died"
            refs = Refs(worker=who or None)
            yield Standing("run", run.run_id, run.step, waits, moved, run.scheduled_at, until, refs=refs)
        elif state.paused:
            waits, moved = "the execution to be unpaused", f"`noetl unpause {state.execution_id}`"
            yield Standing("run", run.run_id, run.step, waits, moved, run.scheduled_at, until, cause="paused")
        elif run.phase != "routing":  # else it has ended: only its next arcs are to be chosen
            yield replace(_unclaimed(state, run, lacks.get(run.run_id), line), until=until)


def _unclaimed(state: Execution, run: StepRun, lack: str | None, line: Line) -> Standing:
    """Return what queued work of a run waits for."""
    work = work_id(state, run)
    ahead = line.work.get(work, 0)
    behind = f"; {ahead} work items of its pool go before it" if ahead else ""
    waits, moved = f"a worker{behind}", "a worker that claims it" + _driver(state)
    cause: Cause = "worker"
    refs = Refs(pool=state.pool or run.pool)
    limits = _full(line, [work])
    if limits:
        waits, moved = f"{_reached(line, [work])}{behind}", "the end of one of them"
        cause, refs = "room", replace(refs, limits=limits)
    if lack:
        waits, moved = f"a worker; {lack}", "starting such a worker" + _driver(state)
        cause = "worker"
    return Standing("run", run.run_id, run.step, waits, moved, run.scheduled_at, cause=cause, refs=refs)


def _full(line: Line, work: Iterable[str]) -> tuple[str, ...]:
    """Return the limits of the server that keep queued work waiting."""
    return tuple(dict.fromkeys(name for one in work for name in line.limits.get(one, ()) if name in line.full))


def _reached(line: Line, work: Iterable[str]) -> str:
    """Return the limits of the server that keep queued work waiting, for people."""
    named = " and ".join(f"{line.full[name]} work items of {_limit_name(name)}" for name in _full(line, work))
    return f"the server's limit of {named} at once" if named else ""


def _limit_name(name: str) -> str:
    """Return a limit of the server for people."""
    what, _, which = name.partition(" ")
    return f"the {what} `{which}`" if which else "the default pool"


def _reviewed(state: Execution, review: Mapping[str, Any], run: StepRun) -> Standing:
    name = state.execution_id
    moved = f"`noetl unpause {name}`, which continues it, or `noetl cancel {name}`, which ends it"
    waits, since = f"a review: {review['review']}", int(review["since"])
    return Standing("run", run.run_id, run.step, waits, moved, since, cause="paused")


def _children(state: Execution, known: Past) -> Iterator[Standing]:
    """Yield children that outlived their run and must compensate first."""
    alone = left_alone(state)
    for child in alone:
        owner = state.children[child][0]
        waits, moved = "this child to roll back", f"the child's end: `noetl explain {child}`"
        step, began, refs = owner.rpartition("#")[0], known.undone.get(owner, state.at), Refs(child=child)
        yield Standing("child", child, step, waits, moved, began, _end(state), cause="child", refs=refs)


def _loop(
    plan: Plan,
    state: Execution,
    run: StepRun,
    times: Mapping[int, int],
    until: int | None,
    lack: str | None,
    line: Line,
) -> Iterator[Standing]:
    loop = run.loop
    if loop is None:
        return
    pending = {work_id(state, run, name): len(piece.pending) for name, piece in loop.pieces.items()}
    queued = {name: count for name, count in pending.items() if name in line.work}
    total = "?" if loop.cursor else str(loop.total)
    under_way = sum(pending.values()) - sum(queued.values())
    waits = f"its items: {loop.ended} of {total} have ended, {under_way} are in flight"
    if queued:
        waits += f", {sum(queued.values())} are queued"
    if loop.suspended:
        waits += f", {len(loop.suspended)} wait"
    if loop.failed:
        waits += f", {loop.failed} failed"
    if lack and any(not piece.epoch for piece in loop.pieces.values()):
        waits += f"; {lack}"
    reached = _reached(line, queued)
    if reached:
        waits += f"; those that are queued wait for {reached}"
    moved = (
        "a worker's report" + _driver(state) if under_way or not reached else "the end of other work under the limit"
    )
    standing = Standing("run", run.run_id, run.step, waits, moved, run.scheduled_at, until, cause="items")
    refs = Refs(pool=(state.pool or run.pool) if lack else None, limits=_full(line, queued))
    yield replace(standing, refs=refs, arrived=loop.ended, needed=None if loop.cursor else loop.total)
    for index, held in loop.suspended.items():
        standing = _held(plan, state, run, held, times, until)
        yield replace(standing, what="item", name=f"{run.run_id}[{index}]")


def _held(
    plan: Plan, state: Execution, run: StepRun, held: Suspended, times: Mapping[int, int], until: int | None
) -> Standing:
    waits, moved = _suspension(held)
    since = times.get(held.seq, run.scheduled_at)
    standing = Standing("run", run.run_id, run.step, waits, moved, since, _earlier(held.until, until))
    if held.signal is None:
        cause: Cause = "child" if held.child_id is not None else "delay" if held.cause == "delay" else "sleep"
        return replace(standing, cause=cause, refs=Refs(child=held.child_id))
    return _answerable(state, standing, held.signal, expects_decision(plan, run.step))


def _suspension(held: Suspended) -> tuple[str, str]:
    if held.signal is not None:
        return f"the signal `{held.signal}`", "that signal"
    if held.child_id is not None:
        return f"its child execution {held.child_id}", f"the child's end: `noetl explain {held.child_id}`"
    if held.cause == "delay":
        return "the next attempt of a task that failed", "the time"
    return "the end of a `sleep`", "the time"


def _messages(state: Execution, known: Past) -> Iterator[Standing]:
    for name, event in known.poisoned.items() if state.phase != "ended" else ():
        if state.letters.get(name) == PENDING:
            waits = f"an operator: {event.payload['error']['message']}"
            moved = f"`noetl dlq replay {name}` when the cause is fixed; `noetl dlq show {name}` shows details"
            since = int(event.payload["letter"]["first_seen"])
            standing = Standing("message", str(event.payload["of"]), event.entity_id, waits, moved, since, _end(state))
            yield replace(standing, cause="message", refs=Refs(letter=name))


def _driver(state: Execution) -> str:
    return f"; `noetl resume {state.execution_id}` if no process drives it" if state.pool.startswith("local:") else ""


def _end(state: Execution, run: StepRun | None = None) -> int | None:
    ends = [
        timer.at
        for timer in state.timers.values()
        if timer.cause == "execution" or (run is not None and timer.run_id == run.run_id and timer.cause != "wake")
    ]
    return min(ends, default=None)


def _earlier(one: int | None, other: int | None) -> int | None:
    known = [at for at in (one, other) if at is not None]
    return min(known, default=None)


def _routed(event: Event) -> Choice:
    payload = event.payload
    arcs = payload.get("arcs", ())
    taken = [arc["step"] for arc in arcs if arc.get("matched") and arc["arc"] in payload.get("taken", ())]
    decided = f"after {payload.get('event', 'its end')}: " + (
        " and ".join(taken) if taken else "no arc, the branch ends"
    )
    if payload.get("action"):
        decided += f" (`on_step_fail: {payload['action']}`)"
    return Choice(event.seq, event.timestamp, event.entity_id, decided, tuple(map(_arc, arcs)))


def _arc(arc: Mapping[str, Any]) -> str:
    matched = bool(arc.get("matched"))
    if "when" in arc:
        why = f"{arc['when']} {'holds' if matched else 'does not hold'}"
    else:
        why = "no condition, so taken on success" if matched else "no condition, so not taken on failure"
    line = f"→ {arc['step']}: {why}"
    if arc.get("by"):
        line = f"→ {arc['step']}: by `{arc['by']}`"
    read = values(arc.get("read"))
    line += f" ({read})" if read else ""
    return line + (f"; {arc['error']}" if arc.get("error") else "")


def _admitted(event: Event) -> Choice:
    payload = event.payload
    decided = "the gate admits" if payload.get("allow") else "the gate denies"
    rule = payload.get("rule")
    reason = "no rule matches" if rule is None else f"rule {rule + 1} matches"
    read = values(payload.get("read"))
    because = f"{reason} ({read})" if read else reason
    errors = tuple(f"a condition cannot be evaluated: {error}" for error in payload.get("errors", ()))
    return Choice(event.seq, event.timestamp, event.entity_id, decided, (because, *errors))


def _judged(event: Event) -> Choice | None:
    problems = event.payload.get("problems", ())
    if not problems:
        return None
    step = str(event.step_run_id or event.entity_id).partition("#")[0]
    decided = f"the policy of task {event.entity_id} says {event.payload.get('do')}"
    return Choice(
        event.seq,
        event.timestamp,
        step,
        decided,
        tuple(f"a condition cannot be evaluated: {problem}" for problem in problems),
    )


def _repaired(event: Event) -> Choice:
    lost = tuple(f"{what}: {', '.join(map(str, names))}" for what, names in event.payload.items())
    return Choice(event.seq, event.timestamp, "", "rows that were missing beside the log were restored", lost)


def _poisoned(event: Event) -> Choice:
    reason = f"{event.payload['error']['message']} (`noetl dlq show {_letter(event)}`)"
    return Choice(event.seq, event.timestamp, event.entity_id, "the server could not decide a message", (reason,))


def _letter(event: Event) -> str:
    return letter_id(event.execution_id, str(event.payload["of"]), None)


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:77] + "…"
