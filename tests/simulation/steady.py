"""What must hold of a state between any two commits, not only at the end."""

from __future__ import annotations

from collections.abc import Mapping

from noetl.engine.plan.plan import Plan
from noetl.engine.routing.join import meetings
from noetl.engine.state.evolve import evolve
from noetl.engine.state.execution import Execution, Loop
from noetl.ports import EventLog


class Steady:
    """Fold every log again, commit by commit, and keep the first wrong state."""

    def __init__(self, plans: Mapping[str, Plan]) -> None:
        self._plans = plans
        self._states: dict[str, Execution] = {}
        self.problem: AssertionError | None = None
        self.looks = 0

    async def look(self, log: EventLog, execution_id: str) -> None:
        """Look at an execution that was just written."""
        state = self._states.setdefault(execution_id, Execution(execution_id))
        for event in await log.read(execution_id, state.seq):
            if event.seq > state.seq:  # another look may have come between
                evolve(state, event)
        self.looks += 1
        try:
            if state.phase != "pending":
                check(state, self._plans[state.path])
        except AssertionError as problem:
            self.problem = self.problem or problem


def check(state: Execution, plan: Plan) -> None:
    """Hold a state to everything that is true between commits."""
    assert state.phase in ("running", "closing", "ended"), f"it was left {state.phase}"
    assert all(run.phase != "routing" for run in state.runs.values()), "a router was left in the middle"
    _rests_only_where_it_must(state, plan)
    _holds_its_bounds(state, plan)
    _refers_to_what_is_there(state)


def _rests_only_where_it_must(state: Execution, plan: Plan) -> None:
    """Stalled and not quiescent is waiting; quiescent is the end; what could run does."""
    if state.phase != "running":
        assert not state.tokens, "tokens are left at the end"
        under_way = state.runs or state.children  # what children did is undone first
        assert state.phase == "ended" or under_way or state.paused, "nothing ends it"
        return
    assert state.tokens or state.runs, "it is quiescent and has not ended"
    parked = [token for token in state.tokens.values() if token.parked]
    stalled = not state.runs
    assert (state.status == "waiting") == (stalled and not state.paused), (
        f"stalled is {stalled}, and it is {state.status}"
    )
    if state.paused:
        return
    assert not stalled or parked, "it is stalled with no token that is parked"
    policy = plan.setting("on_parked", default="wait")
    assert not stalled or policy == "wait", f"parked tokens are left with `on_parked: {policy}`"
    bound = plan.setting("max_parallel")
    if isinstance(bound, int) and len(state.runs) >= bound:
        return
    for meeting in meetings(plan, state):
        assert meeting.verdict == "wait", f"tokens at {meeting.step} could go on: {meeting}"
        assert all(carrier in state.tokens or carrier in state.runs for carrier in meeting.missing)


def _holds_its_bounds(state: Execution, plan: Plan) -> None:
    bound = plan.setting("max_parallel")
    assert not isinstance(bound, int) or len(state.runs) <= bound, "more runs than `max_parallel` are in flight"
    for run in state.runs.values():
        if run.loop is not None:
            _loop_adds_up(run.loop)


def _loop_adds_up(loop: Loop) -> None:
    width = sum(piece.width for piece in loop.pieces.values()) + len(loop.suspended)
    assert width <= loop.width, f"{width} items are in flight, and {loop.width} may be"
    under_way = [index for piece in loop.pieces.values() for index in piece.pending]
    assert len(under_way) == len(set(under_way)), "an item is with two workers"
    assert not set(under_way) & loop.suspended.keys(), "an item is both suspended and under way"
    back = sum(count for _, count in loop.back)
    assert loop.ended + len(under_way) + len(loop.suspended) + back == loop.issued, "an issued item was lost"
    assert loop.ended < loop.total, "all items have ended, and the loop has not"


def _refers_to_what_is_there(state: Execution) -> None:
    live = state.tokens.keys() | state.runs.keys()
    for fork in state.forks.values():
        assert fork.carriers, f"nobody remembers {fork.fork_id}"
        assert fork.carriers <= live, f"{fork.fork_id} is remembered by what is gone"
    lineages = [token.lineage for token in state.tokens.values()] + [run.lineage for run in state.runs.values()]
    for lineage in lineages:
        assert lineage.keys() <= state.forks.keys(), f"a fork is forgotten, and somebody remembers it: {lineage}"
    runs = state.runs.keys() | state.replays.keys()
    for timer in state.timers.values():
        assert timer.run_id is None or timer.run_id in runs, f"{timer} is for a run that is gone"
    if state.phase in ("running", "ended"):  # one that closes may wait for children whose runs were cut
        assert all(owner in runs for owner, _ in state.children.values()), "a child has no parent"
