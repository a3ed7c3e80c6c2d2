"""What a pipeline records, and that it records no more than that."""

from __future__ import annotations

from typing import Any

from noetl.engine.tasks.run_info import Scopes
from noetl.model.outcome import failed, ok
from tests.unit.engine.pipeline.piping import START, Run, info, tasks

BAD = failed("server_error", "down", code="HTTP_503", retryable=True)
RULED = tasks("""
- a:
    kind: noop
    spec:
      policy:
        rules:
          - when: "{{ outcome.error.code == 'HTTP_503' and ctx.patience > 1 }}"
            then: {do: retry, attempts: 3}
          - else: {then: {do: continue}}
""")


def test_a_plain_task_is_two_records() -> None:
    run = Run(tasks("- a: {kind: noop}"))
    run.result()
    assert run.events == ["task.started", "task.done"]
    done = run.records[1]
    assert (done.task, done.task_run_id, done.attempt, done.status, done.duration_ms) == ("a", "42:s:a", 1, "ok", 10)
    assert done.payload == {"started_at": START}


def test_attempts_are_recorded_only_with_retries() -> None:
    run = Run(tasks("- a: {kind: http, url: x}"), {"a": [BAD, ok(1)]})
    run.result()
    assert run.events == [
        "task.started",
        "task.attempt.failed",
        "task.attempt.started",
        "task.attempt.done",
        "task.done",
    ]
    first = run.records[1]
    assert first.payload["error"]["code"] == "HTTP_503"
    assert first.payload["delay_ms"] > 0
    assert [record.attempt for record in run.records] == [None, 1, 2, 2, 2]


def test_a_verdict_is_recorded_with_its_rule_and_what_it_read() -> None:
    run = Run(RULED, {"a": [BAD, ok(1)]}, Scopes(ctx={"patience": 2}))
    run.result()
    verdicts = [record.payload for record in run.records if record.event_type == "policy.task.evaluated"]
    assert verdicts[0] == {
        "rule": 0, "do": "retry", "delay_ms": 0, "read": {"outcome.error.code": "HTTP_503", "ctx.patience": 2},
    }  # fmt: skip
    assert verdicts[1] == {"rule": 1, "else": True, "do": "continue", "read": {"outcome.error.code": "(undefined)"}}


def test_values_that_were_read_are_kept_small_and_secrets_are_not_kept() -> None:
    rules = '{policy: {rules: [{when: "{{ keychain.k and ctx.long and ctx.list }}", then: {do: continue}}]}}'
    scopes = Scopes(ctx={"long": "x" * 5_000, "list": list(range(1_000))}, keychain={"k": "s3cret"})
    run = Run(tasks(f"- a: {{kind: noop, spec: {rules}}}"), scopes=scopes)
    run.result()
    (verdict,) = [record.payload for record in run.records if record.event_type == "policy.task.evaluated"]
    assert verdict["read"] == {"keychain.k": "(secret)", "ctx.long": "x" * 200 + "…", "ctx.list": "(list of 1000)"}


def test_a_condition_that_cannot_be_evaluated_is_recorded() -> None:
    run = Run(tasks("- a: {kind: noop, spec: {policy: {rules: [{when: '{{ 1 / 0 }}', then: {do: fail}}]}}}"))
    run.result()
    (verdict,) = [record.payload for record in run.records if record.event_type == "policy.task.evaluated"]
    assert (verdict["rule"], verdict["do"], len(verdict["problems"])) == (None, "continue", 1)


def _item(pipeline: Any, outcomes: Any = None, **settings: Any) -> list[str]:
    run = Run(pipeline, outcomes, Scopes(ctx={"patience": 2}), info(index=3, settings=settings))
    run.result()
    assert all(record.iteration == 3 for record in run.records)
    return run.events


def test_an_item_that_ends_well_records_nothing_of_its_own() -> None:
    assert _item(tasks("- a: {kind: noop}\n- b: {kind: noop}")) == []
    assert _item(RULED) == []
    assert _item(tasks("- a: {kind: noop}"), durability="task") == ["task.started", "task.done"]


def test_an_item_records_what_went_wrong() -> None:
    wrong = failed("client_error", "no")
    assert _item(tasks("- a: {kind: noop}"), {"a": [wrong]}) == ["task.failed"]
    assert "policy.task.evaluated" in _item(RULED, {"a": [BAD, ok(1)]})


def test_records_are_given_once() -> None:
    run = Run(tasks("- a: {kind: noop}"))
    run.result()
    assert run.pipeline.records() == ()


def test_an_inner_task_is_recorded_under_its_call() -> None:
    book = tasks("- inner: {kind: noop}")
    run = Run(tasks("- t: {kind: workbook, task: inner}"), run_info=info(workbook=book))
    run.result()
    assert [(record.event_type, record.task) for record in run.records] == [
        ("task.started", "t"), ("task.started", "t/inner"), ("task.done", "t/inner"), ("task.done", "t"),
    ]  # fmt: skip
