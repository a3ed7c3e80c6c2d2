"""A pause for a review withholds work and timers until it is unpaused."""

from __future__ import annotations

from noetl.engine.queries.explain import standings
from noetl.engine.queries.projections import Recorded, timers, work
from noetl.model.messages import Cancel, LeaseLost, Pause, Signal, Unpause
from tests.unit.engine.given import book, done, given
from tests.unit.engine.routing.test_saga import began

REASON = "it was restored"
LIMITED = book("- {step: s, spec: {timeout_s: 5}, tool: {kind: noop}, next: t}\n- {step: t, tool: {kind: noop}}")
ASK = book("- {step: s, tool: {kind: wait, signal: go}}")


def test_work_and_timers_are_withheld() -> None:
    scene = given(LIMITED, began("s#1")).when(Pause("p", review=REASON))
    scene.then("playbook.paused")
    assert scene.state.status == "paused"
    assert scene.decision.dropped == ("9000:s#1",)
    assert scene.decision.cleared == ("step:s#1",)
    assert list(scene.state.timers) == ["step:s#1"]  # known, and not in the store
    assert (work(scene.plan, scene.state, Recorded()), timers(scene.state)) == ([], ())


def test_nothing_queues_work_during_a_review() -> None:
    scene = given(LIMITED, began("s#1"), Pause("p", review=REASON)).when(LeaseLost("l", "s#1", 1))
    assert scene.decision.work == ()
    scene.when(Pause("again", review=REASON)).then()
    scene.when(Pause("plain")).then()


def test_an_unpause_continues_with_all_the_time_that_was_left() -> None:
    scene = given(LIMITED, began("s#1"))
    at, limit = scene.state.at, scene.state.timers["step:s#1"].at
    scene.when(Pause("p", review=REASON)).when(Unpause("u"))
    later = scene.state.at - at
    assert later > 0
    assert [item.work_id for item in scene.decision.work] == ["9000:s#1"]
    assert scene.decision.timers == (("step:s#1", limit + later),)
    assert scene.state.review is None
    scene.when(done("s#1"))
    assert list(scene.state.runs) == ["t#1"]


def test_a_cancel_ends_it_with_its_timers() -> None:
    scene = given(LIMITED, began("s#1"), Pause("p", review=REASON)).when(Cancel("c"))
    assert (scene.state.status, scene.state.review) == ("cancelled", None)


def test_it_is_explained() -> None:
    scene = given(LIMITED, began("s#1"), Pause("p", review=REASON))
    [one] = standings(scene.plan, scene.state, scene.log)
    assert one.waits_for == f"a review: {REASON}"
    assert "`noetl unpause 9000`" in one.moved_by


def test_a_signal_during_a_review_queues_nothing() -> None:
    scene = given(ASK, Pause("p", review=REASON)).when(Signal("g", "go"))
    assert scene.decision.work == ()
