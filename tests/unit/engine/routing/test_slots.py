"""Limits of executions: their keys, mistakes in them, and waiting for a place."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.handlers.decide import Decision, NeedsLoad, decide
from noetl.engine.plan.plan import plan
from noetl.engine.queries.explain import standings
from noetl.engine.routing.slots import (
    held_by,
    held_groups,
    limits_of,
    renewed,
    slot_of,
    without_held,
)
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution, checksum
from noetl.model.errors import InvalidPayload, LimitReached
from noetl.model.events import Event
from noetl.model.messages import Admit, Cancel, Start, TimerDue
from noetl.model.work import PLAYBOOK_LIMITS, Line
from noetl.testing.play import BEGIN, read
from tests.unit.engine.given import book

STEP = "- step: s\n  tool: {kind: noop}"


def limits(spec: str, **workload: Any) -> dict[str, Any] | None:
    head = f"executor:\n  spec:\n    {spec}"
    return limits_of(plan(read(book(STEP, head)), "hash"), Execution("1", path="a/b", workload=workload), BEGIN)


def started(spec: str, **more: Any) -> tuple[Execution, Decision]:
    state = Execution("1")
    decision = decide(plan(read(book(STEP, f"executor:\n  spec:\n    {spec}")), "hash"), state,
                      Start("m", "a/b", "hash", **more), BEGIN)  # fmt: skip
    assert not isinstance(decision, NeedsLoad)
    return state, decision


def test_limits_have_defaults() -> None:
    assert limits("timeout_s: 5") is None
    assert limits("concurrency: {}") == {"group": "a/b", "limit": 1, "on_limit": "queue"}
    rate = {"group": "a/b", "per_second": 0.5, "burst": 1}
    assert limits("rate: {per_second: 0.5}") == {"group": "rate a/b", "rate": rate}


def test_a_key_is_rendered_with_the_workload() -> None:
    found = limits('concurrency: {key: "of {{ workload.who }}", limit: "{{ workload.n }}"}', who="ada", n=3)
    assert found == {"group": "of ada", "limit": 3, "on_limit": "queue"}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ('concurrency: {key: "{{ workload.nothing }}"}', "`executor.spec.concurrency` cannot be evaluated"),
        ('concurrency: {key: ""}', "`executor.spec.concurrency.key` has 0 characters"),
        ("concurrency: {key: \"{{ 'x' * 201 }}\"}", "has 201 characters"),
        ('concurrency: {limit: "{{ 0 }}"}', "`executor.spec.concurrency.limit` is not a whole number"),
        ('rate: {per_second: "{{ 0 }}"}', "`executor.spec.rate.per_second` is not a number of at least"),
        ("rate: {per_second: 1.0e-300}", "`executor.spec.rate.per_second` is not a number of at least"),
        ("concurrency: {limit: 1000001}", "`executor.spec.concurrency.limit` is not a whole number from 1 to"),
        ('rate: {per_second: 1, burst: "{{ 1.5 }}"}', "`executor.spec.rate.burst` is not a whole number"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(spec: str, text: str) -> None:
    with pytest.raises(InvalidPayload, match=text.replace("(", r"\(")):
        limits(spec)


def test_a_rate_is_an_interval_for_the_store() -> None:
    found = limits("rate: {per_second: 4, burst: 3, key: k}")
    assert found is not None
    slot = slot_of(found, 7)
    assert (slot.key, slot.limit, slot.rate, slot.interval_us, slot.burst, slot.at) == ("rate k", 0, "k", 250_000, 3, 7)


def test_an_execution_begins_with_its_place() -> None:
    state, decision = started("concurrency: {limit: 2}")
    assert decision.slot is not None
    assert (decision.slot.key, decision.slot.limit) == ("a/b", 2)
    assert (state.status, len(decision.work)) == ("running", 1)
    assert decision.projection["slot"]["queued"] is False


def test_a_queued_execution_waits_until_it_is_admitted() -> None:
    state, decision = started("concurrency: {limit: 2}", queued="limit")
    assert (state.phase, state.status, decision.work, decision.slot) == ("queued", "pending", (), None)
    known = plan(read(book(STEP, "executor: {spec: {concurrency: {limit: 2}}}")), "hash")
    line = Line({}, "a/b", 3, ("7", "8"))
    [standing] = standings(known, state, decision.events, None, BEGIN, line)
    assert standing.waits_for == "the limit of 2 running executions with the concurrency key 'a/b' (place 3 in line)"
    assert standing.moved_by == "the end of one of them: 7, 8"
    admitted = decide(known, state, Admit("n"), BEGIN + 1)
    assert not isinstance(admitted, NeedsLoad)
    assert admitted.slot is not None
    assert [event.event_type for event in admitted.events[:2]] == ["execution.admitted", "playbook.started"]
    assert checksum(fold("1", (*decision.events, *admitted.events))) == checksum(state)


def test_the_time_of_an_execution_runs_from_its_admission() -> None:
    known = plan(read(book(STEP, "executor: {spec: {concurrency: {}, timeout_s: 3}}")), "hash")
    state = Execution("1")
    events: list[Event] = []
    for message, at in (
        (Start("m", "a/b", "hash", queued="limit"), 0),
        (Admit("n"), 3000),
        (TimerDue("t", "execution"), 6000),
    ):
        decision = decide(known, state, message, BEGIN + at)
        assert not isinstance(decision, NeedsLoad)
        events += decision.events
        assert decision.timers == ((("execution", BEGIN + 6000),) if at == 3000 else ())
    assert state.error is not None
    assert state.error["message"] == "the execution took longer than 3 s (`executor.spec.timeout_s`)"
    assert checksum(fold("1", events)) == checksum(state)


def test_a_queued_execution_can_be_cancelled() -> None:
    state, _ = started("rate: {per_second: 1}", queued="rate")
    known = plan(read(book(STEP, "executor: {spec: {rate: {per_second: 1}}}")), "hash")
    assert standings(known, state, ())[0].moved_by == "the time"
    decide(known, state, Cancel("n"), BEGIN + 1)
    assert state.status == "cancelled"


def test_a_rejected_start_writes_nothing_but_a_child_fails() -> None:
    with pytest.raises(LimitReached, match="1 executions with the concurrency key 'a/b' run already"):
        started("concurrency: {on_limit: reject}", queued="limit")
    parent = {"execution_id": "9", "run_id": "call#1"}
    state, decision = started("concurrency: {on_limit: reject}", queued="limit", parent=parent)
    assert state.status == "failed"
    assert state.error is not None
    assert state.error["code"] == "LIMIT_REACHED"
    assert [to for to, _ in decision.inbox] == ["9"]


def test_a_child_runs_in_the_place_of_its_parent() -> None:
    parent = {"execution_id": "9", "run_id": "call#1", "groups": ["x", "a/b"]}
    state, decision = started("concurrency: {}", queued="limit", parent=parent)
    assert (state.status, decision.slot, state.slot) == ("running", None, None)
    assert held_groups(state) == ["x", "a/b"]
    state, decision = started("concurrency: {key: y}", parent=parent)
    assert decision.slot is not None
    assert held_groups(state) == ["x", "a/b", "y"]


SERVER = {PLAYBOOK_LIMITS: {"a/*": 2}}
ABOVE = {"group": "playbook a/*", "limit": 2}


def server_limits(spec: str) -> dict[str, Any] | None:
    head = f"executor:\n  spec:\n    {spec}"
    return limits_of(plan(read(book(STEP, head)), "hash", SERVER), Execution("1", path="a/b"), BEGIN)


def test_a_limit_of_the_server_stands_beside_that_of_the_playbook() -> None:
    alone = {**ABOVE, "on_limit": "queue", "server": True}
    assert server_limits("timeout_s: 5") == alone
    both = server_limits("concurrency: {}")
    assert both == {"group": "a/b", "limit": 1, "on_limit": "queue", "above": ABOVE}
    slot = slot_of(both or {}, BEGIN)
    assert (slot.key, slot.limit, slot.above, slot.above_limit) == ("a/b", 1, "playbook a/*", 2)
    rated = server_limits("rate: {per_second: 1}") or {}
    assert (rated["group"], rated["limit"], rated["rate"]["group"]) == ("playbook a/*", 2, "a/b")
    state = Execution("1", slot=both)
    assert held_groups(state) == ["a/b", "playbook a/*"]


@pytest.mark.parametrize(
    ("spec", "then", "group", "limit"),
    [
        ("timeout_s: 5", {"a/*": 3}, "playbook a/*", 3),
        ("timeout_s: 5", {"a/b": 1, "a/*": 9}, "playbook a/b", 1),
        ("timeout_s: 5", {}, None, None),
        ("rate: {per_second: 1}", {}, "rate a/b", None),
        ("rate: {per_second: 1}", {"*": 4}, "playbook *", 4),
        ("concurrency: {}", {"a/*": 3}, "a/b", 1),
    ],
)
def test_who_waits_is_admitted_under_the_limit_that_the_server_has_then(
    spec: str, then: dict[str, int], group: str | None, limit: int | None
) -> None:
    text = book(STEP, f"executor:\n  spec:\n    {spec}")
    old, new = (plan(read(text), "hash", {PLAYBOOK_LIMITS: limits}) for limits in ({"a/*": 2}, then))
    state = Execution("1")
    begun = decide(old, state, Start("m", "a/b", "hash", queued="limit"), BEGIN)
    assert not isinstance(begun, NeedsLoad)
    assert state.slot is not None
    found = renewed(state.slot, new, state)
    assert (found or {}).get("group") == group
    admitted = decide(new, state, Admit("n"), BEGIN + 1)
    assert not isinstance(admitted, NeedsLoad)
    assert (admitted.slot is None) == (found is None)
    if admitted.slot is not None:
        assert (admitted.slot.key, admitted.slot.limit or None) == (group, limit)
        assert admitted.slot.above_limit == (3 if spec.startswith("concurrency") else 0)
    assert checksum(fold("1", (*begun.events, *admitted.events))) == checksum(state)


def test_the_text_names_the_limit_that_the_server_has_now() -> None:
    made = read(book(STEP))
    state = Execution("1")
    begun = decide(
        plan(made, "hash", {PLAYBOOK_LIMITS: {"a/*": 2}}), state, Start("m", "a/b", "hash", queued="limit"), BEGIN
    )
    assert not isinstance(begun, NeedsLoad)
    [told] = standings(plan(made, "hash", {PLAYBOOK_LIMITS: {"a/*": 7}}), state, begun.events)
    assert told.waits_for == "the server's limit of 7 running executions of 'playbook a/*'"


def test_the_renewed_limits_of_a_child_are_without_those_that_its_parent_holds() -> None:
    known = plan(read(book(STEP)), "hash", {PLAYBOOK_LIMITS: {"a/*": 2}})
    own = {"group": "a/b", "limit": 1, "on_limit": "queue"}
    child = Execution("1", path="a/b", parent={"execution_id": "2", "groups": ["playbook a/*"]})
    assert renewed(own, known, child) == own
    assert renewed(own, known, Execution("1", path="a/b")) == {**own, "above": ABOVE}


def test_an_execution_that_must_not_wait_waits_for_the_limit_of_the_server() -> None:
    made = read(book(STEP, "executor: {spec: {concurrency: {on_limit: reject}}}"))
    known, state = plan(made, "hash", SERVER), Execution("1")
    decision = decide(known, state, Start("m", "a/b", "hash", queued="above"), BEGIN)
    assert not isinstance(decision, NeedsLoad)
    assert (state.status, decision.slot) == ("pending", None)
    [standing] = standings(known, state, decision.events, None, BEGIN, Line(position=1))
    assert "the server's limit of 2 running executions" in standing.waits_for
    with pytest.raises(LimitReached, match="with the concurrency key 'a/b' run already"):
        decide(known, Execution("2"), Start("n", "a/b", "hash", queued="limit"), BEGIN)


def test_a_child_takes_no_place_that_its_parent_holds() -> None:
    both = {"group": "a/b", "limit": 1, "on_limit": "queue", "above": ABOVE}
    assert without_held(both, ["x"]) == both
    assert without_held(both, ["playbook a/*"]) == {"group": "a/b", "limit": 1, "on_limit": "queue"}
    assert without_held(both, ["a/b"]) == {**ABOVE, "on_limit": "queue", "server": True}
    assert without_held(both, ["a/b", "playbook a/*"]) is None


@pytest.mark.parametrize(
    ("running", "above", "turn_us", "held"),
    [
        (1, 2, 0, ("limit", 0)),
        (0, 2, 0, ("above", 0)),
        (0, 0, 9_000_000, ("rate", 7_000)),
        (0, 0, 1_000_000, ("rate", 5_000)),
    ],
)
def test_which_limit_an_execution_waits_for(running: int, above: int, turn_us: int, held: tuple[str, int]) -> None:
    slot = {"group": "a/b", "limit": 1, "above": ABOVE, "rate": {"group": "r", "per_second": 1, "burst": 3}}
    assert held_by(slot, running, above, turn_us, 5_000) == held


def test_the_text_names_the_limit_that_holds_it() -> None:
    spec = "concurrency: {}\n    rate: {per_second: 2}"
    for by, text in (("limit", "the concurrency key 'a/b'"), ("rate", "the rate of 2 executions per second")):
        state, decision = started(spec, queued=by)
        made = plan(read(book(STEP, f"executor:\n  spec:\n    {spec}")), "hash")
        [told] = standings(made, state, decision.events, None, BEGIN, Line(position=1))
        assert text in told.waits_for
        [told] = standings(made, state, decision.events, None, BEGIN, Line(position=1, held_by="rate", turn_at=7))
        assert ("the rate of 2" in told.waits_for, told.until) == (True, 7)
    with pytest.raises(LimitReached, match="The rate of 2 executions per second with the key 'a/b' is reached"):
        started("concurrency: {on_limit: reject}\n    rate: {per_second: 2}", queued="rate")
