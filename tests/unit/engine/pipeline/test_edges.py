"""Edges of pipelines: crashes, exact bounds, and odd ends of calls."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from noetl.dsl.tree.playbook import Value
from noetl.engine.pipeline.pipeline import MAX_CALLS, Pipeline, advance, restore, resume, start, wake
from noetl.engine.tasks.actions import Finished, RunTask, Suspend
from noetl.engine.tasks.memory import Memory
from noetl.engine.tasks.policy_rules import Attempt, without_policy
from noetl.engine.tasks.retry import HOLD_MS, Schedule, chance, delay_ms, may_run_again, runtime_schedule
from noetl.engine.tasks.run_info import Scopes
from noetl.model.outcome import Outcome, TaskError, failed, ok
from tests.unit.engine.pipeline.piping import START, Run, info, playbook, tasks

SECRET = "hunter22"


def ended(found: Any) -> Finished:
    assert isinstance(found, Finished), found
    return found


def test_an_ended_pipeline_is_ended_for_a_new_owner_too() -> None:
    pipeline = start(tasks("- a: {kind: noop}"), Scopes(), info())
    advance(pipeline, START)
    end = ended(resume(pipeline, ok(1), START + 5))
    other = restore(pipeline.tasks, pipeline.snapshot(), Scopes(), info())
    assert ended(advance(other, START + 9)).result == end.result


def test_a_snapshot_that_waits_for_nothing_fails_instead_of_waiting_for_ever() -> None:
    pipeline = restore(tasks("- a: {kind: wait, signal: go}"), {"phase": "waiting"}, Scopes(), info())
    assert "nothing to wait for" in (ended(advance(pipeline, START)).error or {})["message"]


def test_a_timer_does_not_end_a_wait_that_has_no_end() -> None:
    pipeline = start(tasks("- a: {kind: wait, signal: go}"), Scopes(), info())
    waits = advance(pipeline, START)
    assert waits == Suspend("wait", signal="go")
    assert wake(pipeline, {"by": "timer"}, START + 5) == waits


def test_a_new_owner_knows_with_what_the_attempt_was_made() -> None:
    """A POST that was sent is not retried, even if its method came from `args`."""
    made = tasks("- a: {kind: http, url: 'http://x.test/', method: '{{ input.how }}'}")
    scopes = Scopes(args={"how": "POST"})
    pipeline = start(made, scopes, info())
    advance(pipeline, START)
    other = restore(made, pipeline.snapshot(), scopes, info())
    lost = failed("connection", "lost", code="HTTP_LOST", retryable=True, sent=True)
    assert ended(resume(other, lost, START + 5)).status == "error"


def test_rules_see_the_arguments_of_the_step_as_input() -> None:
    made = tasks("- a: {kind: noop, spec: {policy: {rules: [{when: '{{ input.n == 1 }}', then: {do: fail}}]}}}")
    assert Run(made, scopes=Scopes(args={"n": 1})).result().status == "error"
    assert Run(made, scopes=Scopes(args={"n": 2})).result().status == "ok"


@pytest.mark.parametrize("body", ["kind: sleep, seconds: 5", "kind: wait, signal: go, timeout_s: 5"])
def test_a_secret_may_lie_in_the_input_of_what_only_waits(body: str) -> None:
    made = tasks(f"- a: {{{body}}}")
    knows = info(is_secret=lambda value: SECRET in str(value))
    found = advance(start(made, Scopes(args={"key": SECRET}), knows), START)
    assert isinstance(found, Suspend)


def test_where_a_result_goes_may_depend_on_data() -> None:
    made = tasks("- a: {kind: noop, spec: {result: {inline_max_bytes: '{{ args.most }}'}, timeout: '{{ args.most }}'}}")
    task = advance(start(made, Scopes(args={"most": 7}), info()), START)
    assert isinstance(task, RunTask)
    assert task.spec["result"] == {"inline_max_bytes": 7}
    assert (task.spec["timeout"], task.timeout_ms) == (7, 7000)


def test_the_first_task_has_no_previous_one() -> None:
    first = "- a: {kind: noop, spec: {policy: {rules: [{else: {then: {do: jump, to: previous}}}]}}}\n- b: {kind: noop}"
    end = Run(tasks(first)).result()
    assert (end.status, "jumps to `previous`, which is not there" in (end.error or {})["message"]) == ("error", True)


def test_the_body_of_an_error_that_was_put_away_travels_by_reference() -> None:
    pipeline = start(tasks("- a: {kind: noop}"), Scopes(), info())
    advance(pipeline, START)
    end = resume(pipeline, failed("client_error", "no", result={"why": 1}), START + 5, {"ref": "noetl://x"})
    assert ended(end).result == {"ref": "noetl://x"}


@pytest.mark.parametrize(("delay_s", "hold"), [(HOLD_MS / 1000, True), (HOLD_MS / 1000 + 0.001, False)])
def test_the_longest_delay_that_a_worker_waits_for_in_place(delay_s: float, hold: bool) -> None:
    policy = f"policy: {{rules: [{{else: {{then: {{do: retry, attempts: 2, delay: {delay_s}}}}}}}]}}"
    pipeline = start(tasks(f"- a: {{kind: noop, spec: {{{policy}}}}}"), Scopes(), info())
    advance(pipeline, START)
    waits = resume(pipeline, failed("unknown", "x"), START)
    assert isinstance(waits, Suspend)
    assert (waits.until, waits.hold, HOLD_MS) == (START + round(delay_s * 1000), hold, 3_000)


# Calls of workbook tasks

BOOK = """
workbook:
  - skips: {kind: noop, spec: {policy: {rules: [{else: {then: {do: skip}}}]}}}
  - plain: {kind: noop}
  - again:
      kind: noop
      spec: {limits: {max_transitions: 1}, policy: {rules: [{else: {then: {do: retry, attempts: 9}}}]}}
"""


def called(name: str, outcomes: Any, rules: str = "", book: str = BOOK) -> Finished:
    made = playbook(book + "workflow: [{step: s, tool: {kind: noop}}]").workbook
    policy = f", spec: {{policy: {{rules: [{rules}]}}}}" if rules else ""
    return Run(tasks(f"- t: {{kind: workbook, task: {name}{policy}}}"), outcomes, run_info=info(workbook=made)).result()


def test_a_call_of_a_task_that_is_skipped_gives_nothing_and_succeeds() -> None:
    end = called("skips", {"skips": [failed("client_error", "no", result=1)]})
    assert (end.status, end.result) == ("ok", None)


def test_the_caller_sees_all_of_a_failed_outcome() -> None:
    rule = "{when: '{{ outcome.result.why == 1 and outcome.http.status == 404 }}', then: {do: break}}"
    bad = failed("not_found", "no", result={"why": 1}, http={"status": 404})
    assert called("plain", {"plain": [bad]}, f"{rule}, {{else: {{then: {{do: fail}}}}}}").status == "ok"


def test_a_call_that_ends_without_an_outcome_of_its_task_is_told() -> None:
    end = called("again", {"again": [failed("unknown", "x")]})
    assert (end.error or {})["code"] == "MAX_TRANSITIONS"


@pytest.mark.parametrize(("depth", "status"), [(MAX_CALLS, "ok"), (MAX_CALLS + 1, "error")])
def test_how_deep_calls_may_go(depth: int, status: str) -> None:
    assert MAX_CALLS == 16
    deep = "".join(f"  - t{n}: {{kind: workbook, task: t{n + 1}}}\n" for n in range(1, depth))
    end = called("t1", None, book=f"workbook:\n{deep}  - t{depth}: {{kind: noop}}\n")
    assert end.status == status


# Retries


def test_chance_fills_the_whole_range() -> None:
    drawn = [chance("seed", attempt) for attempt in range(200)]
    assert min(drawn) < 0.1
    assert max(drawn) > 0.9


def test_a_tiny_delay_grows_for_sixty_retries() -> None:
    assert delay_ms(Schedule(99, 2.0**-10, "exponential"), 99, 0.5) == 2**50


def test_what_does_not_store_has_nothing_of_the_schedule_for_storing() -> None:
    assert runtime_schedule({"retries": {"sink": {"max_attempts": 2}}}).attempts == 6
    assert runtime_schedule({"retries": {"sink": {"max_attempts": 2}}}, stores=True).attempts == 2


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("shell", {"command": "SELECT 1"}),
        ("postgres", {"commands": [7]}),
        ("postgres", {"commands": ["SELECT 1", None]}),
    ],
)
def test_only_sql_that_reads_is_read_only(kind: str, fields: dict[str, Any]) -> None:
    assert not may_run_again(kind, fields, TaskError("timeout", "m", retryable=True, sent=True), False)


def test_an_error_without_a_word_fails_and_is_not_tried_again() -> None:
    (task,) = tasks("- a: {kind: http, url: 'http://x.test/'}")
    assert without_policy(Attempt(task, {}, 1, "k", "s", {}), Outcome("error")).do == "fail"


def retried(then: str, settings: dict[str, Any] | None = None, kind: str = "kind: noop") -> Pipeline:
    text = f"- a: {{{kind}, spec: {{policy: {{rules: [{{else: {{then: {{do: retry, {then}}}}}}}]}}}}}}"
    return start(tasks(text), Scopes(), info(settings=settings or {}))


def delays(then: str) -> list[int]:
    """Return the delays before the retries of a task that always fails."""
    pipeline, found, at = retried(f"attempts: 12, {then}"), [], START
    action = advance(pipeline, at)
    while not isinstance(action, Finished):
        if isinstance(action, RunTask):
            action = resume(pipeline, failed("unknown", "x"), at)
        else:
            assert action.until is not None
            found.append(action.until - at)
            at = action.until
            action = advance(pipeline, at)
    return found


def test_jitter_is_there_when_asked_for_and_never_more_than_the_delay() -> None:
    assert set(delays("delay: 10")) == {10_000}
    assert set(delays("delay: 10, jitter: false")) == {10_000}
    spread = delays("delay: 10, jitter: true")
    assert len(set(spread)) > 5
    assert all(5_000 <= one <= 15_000 for one in spread)
    assert all(0 <= one <= 20_000 for one in delays("delay: 10, jitter: 5"))


def test_attempts_that_a_rule_does_not_name_are_those_of_the_settings() -> None:
    settings = {"retries": {"plugin": {"max_attempts": 2}, "sink": {"max_attempts": 3}}}
    stores = "kind: duckdb, table: t, mode: insert, values: {n: 1}"
    for kind, attempts in (("kind: noop", 2), (stores, 3)):
        pipeline, ran = retried("delay: 0", settings, kind), 0
        action = advance(pipeline, START)
        while isinstance(action, RunTask):
            ran += 1
            action = resume(pipeline, failed("unknown", "x"), START)
        assert ran == attempts


@pytest.mark.parametrize(("attempts", "usable"), [(2**53 - 1, True), (2**53, False)])
def test_the_largest_number_of_a_retry(attempts: int, usable: bool) -> None:
    pipeline = retried(f"attempts: {attempts}")
    advance(pipeline, START)
    assert isinstance(resume(pipeline, failed("unknown", "x"), START), RunTask) is usable


@pytest.mark.parametrize(
    ("when", "holds"),
    [("outcome.status", False), ("{{ 1 == 1 }} ", True), ("{% if true %}true{% endif %}", True), ("{% if true %}false{% endif %}", False)],
)  # fmt: skip
def test_conditions_that_are_written_as_text(when: str, holds: bool) -> None:
    (task,) = tasks("- a: {kind: noop, spec: {policy: {rules: [{when: true, then: {do: fail}}]}}}")
    assert task.rules is not None
    rule = structs.replace(task.rules[0], when=Value(when))
    run = Run((structs.replace(task, rules=(rule,)),))
    assert run.result().status == ("error" if holds else "ok")


def test_a_memory_of_nothing_is_ready() -> None:
    assert Memory.of({}) == Memory()
