"""Pipelines that hold no worker: delays, sleep, wait and children."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from noetl.engine.pipeline.pipeline import Pipeline, advance, restore, resume, start, wake
from noetl.engine.tasks.actions import Finished, Next, RunTask, Suspend
from noetl.engine.tasks.run_info import Scopes
from noetl.model.outcome import failed, ok
from noetl.model.refs import expanded
from tests.unit.engine.pipeline.piping import START, Run, info, tasks

BAD = failed("server_error", "down", retryable=True)


def begun(text: str, scopes: Scopes | None = None) -> tuple[Pipeline, Next]:
    pipeline = start(tasks(text), scopes or Scopes(), info())
    return pipeline, advance(pipeline, START)


def ended(action: Next) -> Finished:
    assert isinstance(action, Finished)
    return msgspec.structs.replace(action, result=expanded(action.result))


@pytest.mark.parametrize(("delay", "hold"), [(1, True), (3, True), (4, False), (600, False)])
def test_a_long_delay_gives_the_lease_back_and_a_short_one_waits_in_place(delay: int, hold: bool) -> None:
    pipeline, _ = begun(
        f"- a: {{kind: noop, spec: {{policy: {{rules: [{{else: {{then: {{do: retry, attempts: 2, delay: {delay}}}}}}}]}}}}}}"
    )
    waiting = resume(pipeline, BAD, START)
    assert waiting == Suspend("delay", until=START + delay * 1000, hold=hold)
    assert advance(pipeline, START + delay * 1000 - 1) == Suspend("delay", until=START + delay * 1000, hold=True)
    again = advance(pipeline, START + delay * 1000)
    assert isinstance(again, RunTask)
    assert again.attempt == 2


def test_no_delay_runs_again_at_once() -> None:
    run = Run(
        tasks("- a: {kind: noop, spec: {policy: {rules: [{else: {then: {do: retry, attempts: 3}}}]}}}"), {"a": [BAD]}
    )
    run.result()
    assert run.waits == []
    assert len(run.ran) == 3


def test_sleep_waits_for_its_time() -> None:
    pipeline, waiting = begun("- a: {kind: sleep, seconds: 90}\n- b: {kind: noop}")
    assert waiting == Suspend("sleep", until=START + 90_000)
    assert advance(pipeline, START + 1) == waiting
    action = advance(pipeline, START + 90_000)
    assert isinstance(action, RunTask)
    assert pipeline.memory.results["a"].value == {
        "started_at": "2023-11-14T22:13:20+00:00", "woke_at": "2023-11-14T22:14:50+00:00",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("until", "at"),
    [
        ("'2023-11-14T22:13:25Z'", START + 5000),
        ("'2023-11-14T22:13:25'", START + 5000),
        (START // 1000 + 7, START + 7000),
    ],
)
def test_sleep_until_a_moment(until: Any, at: int) -> None:
    assert begun(f"- a: {{kind: sleep, until: {until}}}")[1] == Suspend("sleep", until=at, civil=True)


def test_a_time_out_before_the_moment_is_a_duration() -> None:
    action = begun("- a: {kind: sleep, until: '2033-11-14T22:13:25Z', spec: {timeout: 5}}")[1]
    assert action == Suspend("sleep", until=START + 5_000, cut=True)


def test_a_moment_in_the_past_is_over_at_once() -> None:
    assert ended(begun("- a: {kind: sleep, until: '2001-01-01T00:00:00Z'}")[1]).status == "ok"
    assert ended(begun("- a: {kind: sleep, seconds: 0}")[1]).status == "ok"


@pytest.mark.parametrize("field", ["seconds: -1", "seconds: soon", "until: tomorrow", "seconds: true"])
def test_a_time_that_is_none_is_an_error(field: str) -> None:
    end = ended(begun(f"- a: {{kind: sleep, {field}}}")[1])
    assert (end.status, (end.error or {})["kind"]) == ("error", "schema")


def test_the_servers_clock_decides_when_a_timer_is_over() -> None:
    pipeline, _ = begun("- a: {kind: sleep, seconds: 90}")
    assert ended(wake(pipeline, {"by": "timer"}, START + 5)).status == "ok"


def test_wait_ends_with_the_data_of_its_signal() -> None:
    pipeline, waiting = begun("- a: {kind: wait, signal: 'go-{{ workload.id }}'}", Scopes(workload={"id": 7}))
    assert waiting == Suspend("wait", signal="go-7")
    assert (
        ended(wake(pipeline, {"by": "signal", "name": "go-7", "data": {"yes": True}}, START + 5)).result["yes"] is True
    )


def test_wait_times_out_with_an_error_that_a_policy_may_take() -> None:
    plain = "- a: {kind: wait, signal: go, timeout_s: 60}"
    pipeline, waiting = begun(plain)
    assert waiting == Suspend("wait", until=START + 60_000, signal="go")
    end = ended(wake(pipeline, {"by": "timer"}, START + 60_000))
    assert (end.status, (end.error or {})["kind"]) == ("error", "timeout")
    taken = "{kind: wait, signal: go, timeout_s: 60, spec: {policy: {rules: [{when: '{{ outcome.error.kind == \"timeout\" }}', then: {do: break, set_ctx: {approved: false}}}]}}}"
    pipeline, _ = begun(f"- a: {taken}")
    assert ended(advance(pipeline, START + 60_000)).writes == {"approved": False}


def test_a_child_gets_the_input_and_gives_its_result() -> None:
    text = "- a: {kind: playbook, path: 'b/{{ workload.x }}', version: 3, return_step: last, args: {day: '{{ workload.x }}'}}"
    pipeline, waiting = begun(text, Scopes(workload={"x": 7}))
    child = {"path": "b/7", "version": 3, "return_step": "last", "payload": {"day": 7}}
    assert waiting == Suspend("playbook", child=child)
    assert ended(wake(pipeline, {"by": "child", "status": "completed", "result": [1]}, START)).result == [1]


@pytest.mark.parametrize(
    ("woke", "kind"),
    [
        ({"status": "failed", "error": {"kind": "timeout", "message": "m", "task": "x"}}, "timeout"),
        ({"status": "failed", "error": {"message": "m"}}, "unknown"),
        ({"status": "failed", "error": {"kind": "of a newer version", "message": "m"}}, "unknown"),
        ({"status": "cancelled"}, "cancelled"),
    ],
)
def test_a_child_that_failed_is_an_error(woke: dict[str, Any], kind: str) -> None:
    pipeline, _ = begun("- a: {kind: playbook, path: p}")
    end = ended(wake(pipeline, {"by": "child", **woke}, START))
    assert (end.status, (end.error or {})["kind"]) == ("error", kind)


def test_a_secret_is_not_given_to_a_child() -> None:
    scopes = Scopes(keychain={"k": "s3cret"})
    end = ended(begun("- a: {kind: playbook, path: p, args: {x: '{{ keychain.k }}'}}", scopes)[1])
    assert (end.status, "`auth`" in (end.error or {})["message"]) == ("error", True)
    assert "s3cret" not in str(end)


def test_a_suspended_pipeline_goes_on_elsewhere() -> None:
    pipeline, waiting = begun("- a: {kind: wait, signal: go}\n- b: {kind: noop, message: '{{ a.x }}'}")
    assert isinstance(waiting, Suspend)
    other = restore(pipeline.tasks, pipeline.snapshot(), Scopes(), info())
    assert advance(other, START + 1) == waiting
    action = wake(other, {"by": "signal", "data": {"x": 5}}, START + 2)
    assert isinstance(action, RunTask)
    assert action.fields == {"message": 5}


def test_an_attempt_that_was_handed_out_is_handed_out_again_after_a_crash() -> None:
    pipeline, first = begun("- a: {kind: noop}\n- b: {kind: noop}")
    assert isinstance(first, RunTask)
    other = restore(pipeline.tasks, pipeline.snapshot(), Scopes(), info())
    again = advance(other, START + 5_000)
    assert isinstance(again, RunTask)
    assert (again.idempotency_key, again.attempt) == (first.idempotency_key, first.attempt)
    assert other.records() == ()
    assert isinstance(resume(other, ok(1), START + 6_000), RunTask)
