"""Step-runs and items as their events tell them."""

from __future__ import annotations

from noetl.engine.queries.history.step_run import RunHistory, RunView, open_state
from noetl.model.messages import Complete, Suspension
from noetl.testing.play import BEGIN, Hold, Said, Script

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n"
ONE = "- step: a\n  tool: {kind: noop}\n  next: {arcs: [{step: b, args: {n: 1}}]}\n- step: b\n  tool: {kind: noop}\n"
LOOP = (
    "- step: a\n  loop: {in: [x, y, z], iterator: i, spec: {mode: parallel, max_in_flight: 2}}\n  tool: {kind: noop}\n"
)


def played(workflow: str, **outcomes: object) -> Script:
    return Script(HEAD + workflow, outcomes, payload={}).run(timers=False)


def view(script: Script, run: str, item: int | None = None) -> RunView:
    history = RunHistory(run, item)
    for event in script.events:
        history.add(event)
    return history.view


def test_a_run_has_its_arguments_result_and_times() -> None:
    script = played(ONE, a=1, b={"rows": 3})
    first, second = view(script, "a#1"), view(script, "b#1")
    assert (first.state, first.result, first.args) == ("done", 1, {})
    assert (second.step, second.number, second.state, second.args) == ("b", 1, "done", {"n": 1})
    assert (second.result, second.error, second.ref) == ({"rows": 3}, None, None)
    assert (second.ended_seq or 0) > second.scheduled_seq > (first.ended_seq or 0)


def test_a_run_that_failed_has_its_error() -> None:
    failed = view(played(ONE, a=Said(error={"kind": "unknown", "message": "no"})), "a#1")
    assert (failed.state, failed.error["message"], failed.result) == ("failed", "no", None)


def test_a_run_that_waits_names_its_signal_and_time() -> None:
    rests = Said(suspend=Suspension("wait", {}, until=BEGIN + 5_000, signal="go"))
    waiting = view(played(ONE, a=rests), "a#1")
    assert (waiting.state, waiting.signal, waiting.until) == ("waiting", "go", BEGIN + 5_000)


def test_a_forced_run_says_so() -> None:
    script = played(ONE, a=Hold())
    script.tell(Complete("m", "a", 7, "ada", "by phone"))
    forced = view(script, "a#1")
    assert (forced.state, forced.result, forced.by, forced.reason) == ("forced", 7, "ada", "by phone")


def test_an_item_has_its_value_and_its_own_end() -> None:
    script = played(LOOP, a=[1, Hold(), Hold()])
    done, queued, last = (view(script, "a#1", item) for item in range(3))
    assert (done.value, done.state, done.result) == ("x", "done", 1)
    assert [open_state(script.state, one) for one in (done, queued, last)] == ["done", "queued", "queued"]
    assert view(script, "a#1").state == "running"


def test_events_of_other_runs_change_nothing() -> None:
    history = RunHistory("c#1")
    for event in played(ONE, a=1, b=2).events:
        history.add(event)
    assert (history.is_known, history.view) == (False, RunView("c#1"))
