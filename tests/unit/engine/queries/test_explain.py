"""Explanations: what each token and run waits for, and past decisions."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.queries.explain import Refs, Standing, choices, standings
from noetl.engine.state.evolve import evolve
from noetl.engine.state.execution import Execution
from noetl.model.messages import Pause, Signal, Suspension
from noetl.model.work import Line
from noetl.testing.play import BEGIN, Hold, Said, Script

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\n"


def played(workflow: str, *, head: str = "", **outcomes: object) -> Script:
    return Script(HEAD + head + "workflow:\n" + workflow, outcomes, payload={}).run(timers=False)


def told(script: Script) -> dict[str, Standing]:
    return {one.name: one for one in standings(script.plan, script.state, script.events)}


def test_an_execution_that_ended_has_nothing_left() -> None:
    assert told(played("- step: a\n  tool: {kind: noop}\n")) == {}


def test_a_parked_token_names_its_gate_and_what_that_read() -> None:
    gate = "spec: {policy: {admit: {rules: [{when: '{{ ctx.ready }}', then: {allow: true}}]}}}"
    script = played(f"- step: a\n  tool: {{kind: noop}}\n  {gate}\n")
    (one,) = told(script).values()
    assert one.step == "a"
    assert "the gate of `a` to open: {{ ctx.ready }}" in one.waits_for
    assert one.read is not None
    assert "ctx.ready" in one.read
    assert "ctx" in one.moved_by
    assert one.since == BEGIN


def test_a_gate_that_reads_signals_is_moved_by_one() -> None:
    gate = "spec: {policy: {admit: {rules: [{when: '{{ ctx.signals.go }}', then: {allow: true}}]}}}"
    (one,) = told(played(f"- step: a\n  tool: {{kind: noop}}\n  {gate}\n")).values()
    assert "noetl signal" in one.moved_by


def test_a_join_names_the_siblings_that_can_still_come() -> None:
    workflow = (
        "- step: f\n  next: [a, b]\n- step: a\n  tool: {kind: noop}\n  next: j\n"
        "- step: b\n  tool: {kind: noop}\n  next: j\n- step: j\n  tool: {kind: noop}\n"
    )
    found = told(played(workflow, b=Hold()))
    (waiting,) = [one for one in found.values() if one.what == "token"]
    assert waiting.step == "j"
    assert "`b#1`" in waiting.waits_for
    assert found["b#1"].what == "run"


def test_a_join_of_some_counts_them() -> None:
    workflow = (
        "- step: f\n  next: [a, b, c]\n"
        + "".join(f"- step: {name}\n  tool: {{kind: noop}}\n  next: j\n" for name in "abc")
        + "- step: j\n  spec: {join: 2}\n  tool: {kind: noop}\n"
    )
    (one,) = [one for one in told(played(workflow, b=Hold(), c=Hold())).values() if one.what == "token"]
    assert "1 of 2 are there" in one.waits_for


def test_a_token_without_room_names_the_bound() -> None:
    head = "executor: {spec: {max_parallel: 1}}\n"
    workflow = "- step: f\n  next: [a, b]\n- step: a\n  tool: {kind: noop}\n- step: b\n  tool: {kind: noop}\n"
    (one,) = [one for one in told(played(workflow, head=head, a=Hold())).values() if one.what == "token"]
    assert (one.step, one.moved_by) == ("b", "a step-run that ends")
    assert "allows 1 step-runs" in one.waits_for


def test_work_in_the_queue_waits_for_a_worker() -> None:
    found = told(played("- step: a\n  tool: {kind: noop}\n", a=Hold()))
    assert (found["a#1"].waits_for, found["a#1"].until) == ("a worker", None)


def test_a_step_run_waits_for_no_worker_once_it_has_ended() -> None:
    script = played("- step: a\n  tool: {kind: noop}\n  next: b\n- step: b\n  tool: {kind: noop}\n")
    state = Execution(script.state.execution_id)
    found = []
    for event in script.events:
        evolve(state, event)
        found.append(
            (event.event_type, [one.name for one in standings(script.plan, state, script.events[: event.seq])])
        )
    assert [names for kind, names in found if kind == "step.done"] == [[], []]
    assert ("step.scheduled", ["a#1"]) in found


def test_a_paused_execution_says_so() -> None:
    script = played("- step: a\n  tool: {kind: noop}\n  next: b\n- step: b\n  tool: {kind: noop}\n", a=Hold())
    script.tell(Pause("p"))
    assert "unpaused" in told(script)["a#1"].waits_for


def test_a_signal_is_waited_for_until_its_time() -> None:
    rests = Said(suspend=Suspension("wait", {}, until=BEGIN + 5_000, signal="go"))
    found = told(played("- step: a\n  tool: {kind: wait, signal: go}\n", a=rests))
    assert found["a#1"].waits_for == "the signal `go`"
    assert "noetl signal 900000000000000001 go" in found["a#1"].moved_by
    assert found["a#1"].until == BEGIN + 5_000


def test_a_child_is_named() -> None:
    rests = Said(suspend=Suspension("playbook", {}, child={"path": "c"}))
    (one,) = told(played("- step: a\n  tool: {kind: playbook, path: c}\n", a=rests)).values()
    assert "child execution" in one.waits_for
    assert "noetl explain" in one.moved_by


def test_a_step_that_has_a_deadline_ends_by_then() -> None:
    found = told(played("- step: a\n  spec: {policy: {lifecycle: {deadline_s: 9}}}\n  tool: {kind: noop}\n", a=Hold()))
    assert found["a#1"].until == BEGIN + 9_000


def test_a_loop_counts_its_items_and_names_those_that_rest() -> None:
    workflow = "- step: a\n  loop: {in: [x, y, z], iterator: i, spec: {mode: parallel, max_in_flight: 3}}\n  tool: {kind: noop}\n"
    rests = Said(suspend=Suspension("wait", {}, signal="go"))
    found = told(played(workflow, a=[1, rests, 3]))
    assert "2 of 3 have ended" in found["a#1"].waits_for
    assert (found["a#1[1]"].what, found["a#1[1]"].waits_for) == ("item", "the signal `go`")


def test_choices_tell_arcs_and_gates_with_the_values_read() -> None:
    gate = "spec: {policy: {admit: {rules: [{when: '{{ ctx.signals.go }}', then: {allow: true}}]}}}"
    workflow = (
        "- step: a\n  tool: {kind: noop}\n  next: [{step: b, when: '{{ a.n > 5 }}'}, {step: c}]\n"
        f"- step: b\n  tool: {{kind: noop}}\n- step: c\n  {gate}\n  tool: {{kind: noop}}\n"
    )
    script = played(workflow, a={"n": 3})
    script.tell(Signal("s", "go", True))
    made = choices(script.events)
    assert [one.step for one in made] == ["a", "c", "c"]
    assert made[0].decided == "after step.done: c"
    assert made[0].because == ("→ b: {{ a.n > 5 }} does not hold (a.n = 3)", "→ c: no condition, so taken on success")
    assert made[1].decided == "the gate denies"
    assert made[2].decided == "the gate admits"
    assert "rule 1 matches" in made[2].because[0]


def test_a_failure_that_halts_is_told_with_its_policy() -> None:
    error = Said(error={"kind": "unknown", "message": "no"})
    (one,) = choices(
        played("- step: a\n  tool: {kind: noop}\n  next: b\n- step: b\n  tool: {kind: noop}\n", a=error).events
    )
    assert "on_step_fail: halt" in one.decided
    assert "no arc" in one.decided


GPU = "- step: a\n  spec: {pool: gpu, requires: {tags: [cuda]}}\n  tool: {kind: noop}\n"


@pytest.mark.parametrize(
    ("pools", "said"),
    [
        ([], "a worker; pool gpu: no worker with the tags cuda"),
        (
            [{"pool": "gpu", "tags": ["cuda"], "workers": 0, "idle_since": BEGIN}],
            "a worker; pool gpu: no worker with the tags cuda for 4 min",
        ),
        (
            [{"pool": "gpu", "tags": ["x"], "workers": 2, "idle_since": None}],
            "a worker; pool gpu: none of its 2 workers has the tags cuda",
        ),
        ([{"pool": "", "tags": ["cuda"], "workers": 2}], "a worker; pool gpu: no worker with the tags cuda"),
        ([{"pool": "gpu", "tags": ["cuda", "x"], "workers": 1}], "a worker"),
        (None, "a worker"),
    ],
)
def test_work_that_no_worker_can_take_says_so(pools: list[dict[str, Any]] | None, said: str) -> None:
    script = Script(HEAD + "workflow:\n" + GPU)
    script.start()
    (one,) = standings(script.plan, script.state, script.events, pools, BEGIN + 250_000)
    assert one.waits_for == said


def test_a_loop_that_no_worker_can_take_says_so() -> None:
    loop = "- step: a\n  spec: {pool: gpu}\n  loop: {in: [1], iterator: x}\n  tool: {kind: noop}\n"
    script = Script(HEAD + "workflow:\n" + loop)
    script.start()
    pools = [{"pool": "gpu", "workers": 0, "idle_since": BEGIN}]
    (one,) = standings(script.plan, script.state, script.events, pools, BEGIN + 45_000)
    assert one.waits_for.endswith("pool gpu: no worker for 45 s")


def test_items_that_a_limit_of_the_server_keeps_in_the_queue_are_told() -> None:
    workflow = "- step: a\n  loop: {in: [1, 2, 3], iterator: x}\n  tool: {kind: http}\n"
    script = played(workflow, a=Hold())
    (run,) = script.state.runs.values()
    assert run.loop is not None
    work = [f"{script.state.execution_id}:{run.run_id}:{name}" for name in run.loop.pieces]
    line = Line(dict.fromkeys(work, 4), limits=dict.fromkeys(work, ("kind http",)), full={"kind http": 2})
    (one,) = standings(script.plan, script.state, script.events, line=line)
    assert one.waits_for == (
        "its items: 0 of 3 have ended, 0 are in flight, 3 are queued; those that are queued wait for the server's limit"
        " of 2 work items of the kind `http` at once"
    )
    assert one.moved_by == "the end of other work under the limit"
    (one,) = standings(script.plan, script.state, script.events, line=Line(dict.fromkeys(work, 4)))
    assert one.waits_for == "its items: 0 of 3 have ended, 0 are in flight, 3 are queued"
    assert one.moved_by.startswith("a worker's report")


FAN = "- step: f\n  next: [a, b]\n- step: a\n  tool: {kind: noop}\n  next: j\n- step: b\n  tool: {kind: noop}\n  next: j\n"
ONE = "- step: a\n  tool: {kind: noop}\n"
GATE = "  spec: {policy: {admit: {rules: [{when: '{{ WHEN }}', then: {allow: true}}]}}}\n"
JOIN = "- step: j\n  tool: {kind: noop}\n"
THREE = (
    "- step: a\n  loop: {in: [x, y, z], iterator: i, spec: {mode: parallel, max_in_flight: 3}}\n  tool: {kind: noop}\n"
)


@pytest.mark.parametrize(
    ("workflow", "outcome", "name", "cause", "refs", "counts"),
    [
        (ONE, Hold(), "a#1", "worker", Refs(pool=""), (None, None)),
        (
            ONE,
            Said(suspend=Suspension("wait", {}, signal="go")),
            "a#1",
            "signal",
            Refs(signal="go"),
            (None, None),
        ),
        (ONE, Said(suspend=Suspension("sleep", {}, until=BEGIN + 9)), "a#1", "sleep", Refs(), (None, None)),
        (ONE, Said(suspend=Suspension("delay", {}, until=BEGIN + 9)), "a#1", "delay", Refs(), (None, None)),
        (ONE + GATE.replace("WHEN", "ctx.ready"), 1, "t1", "gate", Refs(), (None, None)),
        (ONE + GATE.replace("WHEN", "ctx.signals.go"), 1, "t1", "signal", Refs(signal="go"), (None, None)),
        (THREE, [1, Hold(), Hold()], "a#1", "items", Refs(), (1, 3)),
    ],
)
def test_a_cause_is_one_word_with_what_it_refers_to(
    workflow: str, outcome: Any, name: str, cause: str, refs: Refs, counts: tuple[int | None, int | None]
) -> None:
    one = told(played(workflow, a=outcome))[name]
    assert (one.cause, one.refs, (one.arrived, one.needed)) == (cause, refs, counts)


@pytest.mark.parametrize(("join", "needed"), [("all", 2), ("2", 2)])
def test_a_join_counts_what_arrived_and_names_the_steps_that_can_still_come(join: str, needed: int) -> None:
    script = played(f"{FAN}{JOIN}  spec: {{join: {join}}}\n", b=Hold())
    (one,) = [one for one in told(script).values() if one.what == "token"]
    assert (one.cause, one.refs, one.arrived, one.needed) == ("join", Refs(steps=("b",)), 1, needed)


def test_room_a_pause_and_a_child_are_causes() -> None:
    script = played(FAN + JOIN, head="executor: {spec: {max_parallel: 1}}\n", a=Hold())
    (one,) = [one for one in told(script).values() if one.what == "token"]
    assert (one.cause, one.refs, one.needed) == ("room", Refs(limits=("max_parallel",)), None)
    script = played(ONE, a=Hold())
    script.tell(Pause("p"))
    assert told(script)["a#1"].cause == "paused"
    script = played(ONE, a=Said(suspend=Suspension("playbook", {}, child={"path": "c"})))
    (one,) = told(script).values()
    assert (one.cause, one.refs.child) == ("child", next(iter(script.state.children)))
