"""Forks of executions: history, queued work, and events that cannot be forked."""

from __future__ import annotations

import pytest

from noetl.engine.plan.plan import plan
from noetl.engine.queries.execution_fork import fork, place, shared
from noetl.engine.state.evolve import fold
from noetl.model.errors import InvalidInput
from noetl.model.messages import Admit, Complete, Ending, Report, Suspension, TimerDue, Unpause
from noetl.testing.play import BEGIN, Hold, Said, Script, decided, read

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkload: {n: 1}\n"
TWO = "- step: a\n  tool: {kind: noop}\n  next: b\n- step: b\n  tool: {kind: noop}\n"
FORK = "777"


def played(workflow: str, **outcomes: object) -> Script:
    return Script(HEAD + "workflow:\n" + workflow, outcomes).run(timers=False)


def test_the_shared_history_is_the_old_one_under_a_new_id() -> None:
    script = played(TWO)
    copied = shared(script.events, 6, FORK, pool="local:777", workload={"deep.n": 2})
    assert [event.event_type for event in copied] == [event.event_type for event in script.events[:6]]
    assert {event.execution_id for event in copied} == {FORK}
    assert len({event.event_id for event in copied} | {event.event_id for event in script.events}) == 6 + len(
        script.events
    )
    state = fold(FORK, copied)
    assert state.pool == "local:777"
    assert state.workload == {"n": 1, "deep": {"n": 2}}
    assert copied[0].payload["forked_from"] == {"execution_id": script.state.execution_id, "seq": 6}


def test_a_step_means_the_moment_before_its_last_run() -> None:
    script = played(TWO)
    state = fold(FORK, shared(script.events, place(script.events, "b"), FORK))
    assert [token.step for token in state.tokens.values()] == ["b"]
    assert state.ended["a"].status == "ok"
    assert not state.runs


def test_tokens_that_wait_at_the_cut_move_on_with_the_next_message() -> None:
    script = played(TWO)
    copied = shared(script.events, place(script.events, "b"), FORK)
    made = fork(script.plan, copied, FORK)
    assert made.work == ()
    (work,) = decided(script.plan, fold(FORK, made.events), Unpause("m"), BEGIN).work
    assert (work.run_id, work.execution_id) == ("b#1", FORK)


def test_what_was_under_way_is_in_the_queue_again() -> None:
    script = played(TWO, a=Hold())
    made = fork(script.plan, shared(script.events, len(script.events), FORK), FORK)
    (work,) = made.work
    assert (work.work_id, work.run_id) == ("777:a#1", "a#1")


def test_a_loop_goes_on_with_the_items_that_had_not_ended() -> None:
    workflow = "- step: a\n  loop: {in: [x, y, z], iterator: i}\n  tool: {kind: noop}\n"
    script = played(workflow, a=[1, Hold(), Hold()])
    (work,) = fork(script.plan, shared(script.events, len(script.events), FORK), FORK).work
    assert work.chunk is not None
    assert (work.chunk.start, work.chunk.items) == (1, ("y", "z"))


def test_timers_are_set_again() -> None:
    rests = Said(suspend=Suspension("sleep", {}, until=BEGIN + 1_000))
    script = played(TWO, a=rests)
    made = fork(script.plan, shared(script.events, len(script.events), FORK), FORK)
    assert made.timers == (("wake:a#1", BEGIN + 1_000),)
    assert made.work == ()


def test_a_fork_begins_when_it_is_made() -> None:
    head = HEAD + "executor: {spec: {timeout_s: 60}}\nworkflow:\n"
    script = Script(head + TWO.replace("  next", "  spec: {timeout_s: 5}\n  next"), {"a": Hold()}).run(timers=False)
    at = BEGIN + 3_600_000
    copied = shared(script.events, len(script.events), FORK, at=at)
    made = fork(script.plan, copied, FORK)
    assert dict(made.timers)["execution"] == at + 60_000
    state = fold(FORK, made.events)
    assert state.started_at == made.projection["started_at"] == at
    assert {name: timer.at for name, timer in state.timers.items()} == dict(made.timers)
    decided(script.plan, state, Report("m", "a#1", 9, "w", ending=Ending("ok")), at + 2_000)
    ended = decided(script.plan, state, Report("n", "b#1", 10, "w", ending=Ending("ok")), at + 3_000).events
    assert next(event.duration_ms for event in ended if event.event_type == "playbook.finished") == 3_000


def test_a_fork_says_how_long_its_own_limit_was() -> None:
    head = HEAD + "executor: {spec: {timeout_s: 60}}\nworkflow:\n"
    script = Script(head + TWO, {"a": Hold()}).run(timers=False)
    made = fork(script.plan, shared(script.events, len(script.events), FORK, at=BEGIN + 3_600_000), FORK)
    state = fold(FORK, made.events)
    decided(script.plan, state, TimerDue("t", "execution"), BEGIN + 3_660_000)
    assert state.error is not None
    assert "longer than 60 s" in state.error["message"]


def test_a_gate_decides_once_more() -> None:
    gate = "spec: {policy: {admit: {rules: [{when: '{{ workload.n == 1 }}', then: {allow: true}}]}}}"
    script = played(f"- step: a\n  {gate}\n  tool: {{kind: noop}}\n")
    seq = place(script.events, "a")
    assert all(event.event_type != "policy.admit.evaluated" for event in script.events[:seq])


@pytest.mark.parametrize(("wanted", "said"), [("0", "there is no event 0"), ("99", "from 1 to"), ("c", "a, b")])
def test_a_place_that_is_not_there(wanted: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        place(played(TWO).events, wanted)


def test_an_execution_cannot_be_forked_before_it_began_or_where_it_ends() -> None:
    script = played(TWO)
    for upto, said in ((1, "nothing has run"), (len(script.events), "is ending")):
        with pytest.raises(InvalidInput, match=said):
            fork(script.plan, shared(script.events, upto, FORK), FORK)


def test_an_execution_cannot_be_forked_inside_the_end_of_a_run() -> None:
    script = played(TWO)
    seq = next(event.seq for event in script.events if event.event_type == "step.done")
    with pytest.raises(InvalidInput, match="router of `a`"):
        fork(script.plan, shared(script.events, seq, FORK), FORK)


def test_an_execution_cannot_be_forked_while_a_child_is_under_way() -> None:
    script = played(TWO, a=Said(suspend=Suspension("playbook", {}, child={"path": "c"})))
    with pytest.raises(InvalidInput, match="child execution"):
        fork(script.plan, shared(script.events, len(script.events), FORK), FORK)


def test_another_playbook_must_have_the_steps_where_the_execution_stands() -> None:
    script = played(TWO)
    other = plan(read(HEAD + "workflow:\n- step: a\n  tool: {kind: noop}\n"), "other")
    with pytest.raises(InvalidInput, match="no step `b`"):
        fork(other, shared(script.events, place(script.events, "b"), FORK), FORK)


LOOP = (
    "- step: s\n  loop: {in: [x, y], iterator: i}\n  tool: {kind: noop}\n  next: t\n- {step: t, tool: {kind: noop}}\n"
)
ROUTER = "- {step: s, next: t}\n- {step: t, tool: {kind: noop}}\n"


@pytest.mark.parametrize(
    ("workflow", "last"),
    [(TWO, "workflow.started"), (LOOP, "step.scheduled"), (LOOP, "loop.started"), (ROUTER, "step.scheduled")],
)
def test_a_decision_that_goes_on_is_not_forked(workflow: str, last: str) -> None:
    """Nothing would move such a fork: what begins the loop, or ends the step, follows."""
    script = played(workflow)
    seq = next(event.seq for event in script.events if event.event_type == last)
    with pytest.raises(InvalidInput, match=r"nothing has run|is about to go on"):
        fork(script.plan, shared(script.events, seq, FORK), FORK)


def test_a_fork_that_waits_for_its_limit_goes_on_though_a_step_is_completed_meanwhile() -> None:
    script = Script(HEAD + "executor: {spec: {concurrency: {limit: 1}}}\nworkflow:\n" + TWO, {"b": [Hold()]})
    script.run(timers=False)
    made = fork(script.plan, shared(script.events, script.state.seq, FORK), FORK, queued="its limit")
    state = fold(FORK, made.events)
    assert state.phase == "queued"
    decided(script.plan, state, Complete("c", "b", 5), script.now)
    assert not state.runs
    decided(script.plan, state, Admit("a"), script.now)
    assert state.status == "completed"
    assert state.counts["b"] == {"done": 1, "failed": 0, "skipped": 0}
