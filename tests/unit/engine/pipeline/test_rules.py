"""Task policies: what follows each outcome, and what rules read and write."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.pipeline.pipeline import advance, start
from noetl.engine.tasks.actions import Finished
from noetl.engine.tasks.run_info import Scopes
from noetl.model.outcome import Outcome, failed, ok
from tests.unit.engine.pipeline.piping import START, Run, info, tasks

BAD = failed("server_error", "down", code="HTTP_503", retryable=True)
WRONG = failed("client_error", "no", code="HTTP_400")


def ruled(*rules: str, unmatched: str = "continue", extra: str = "") -> Any:
    """Return a pipeline a, b, c in which b has these rules."""
    lines = "\n".join(f"          - {rule}" for rule in rules)
    return tasks(
        "- a: {kind: noop}\n"
        f"- b:\n    kind: noop\n{extra}    spec:\n      policy:\n        on_unmatched: {unmatched}\n        rules:\n{lines}\n"
        "- c: {kind: noop, message: '{{ _prev }}'}"
    )


ON_ERROR = "\"{{ outcome.status == 'error' }}\""


@pytest.mark.parametrize(
    ("rules", "outcome", "labels", "status"),
    [
        (["else: {then: {do: continue}}"], ok(1), "abc", "ok"),
        (["else: {then: {do: continue}}"], BAD, "abc", "ok"),
        (["else: {then: {do: break}}"], ok(1), "ab", "ok"),
        (["else: {then: {do: fail}}"], ok(1), "ab", "error"),
        (["else: {then: {do: skip}}"], ok(1), "abc", "ok"),
        ([f"{{when: {ON_ERROR}, then: {{do: fail}}}}"], BAD, "ab", "error"),
        ([f"{{when: {ON_ERROR}, then: {{do: fail}}}}"], ok(1), "abc", "ok"),
        (["{when: false, then: {do: fail}}", "{when: true, then: {do: break}}"], ok(1), "ab", "ok"),
        (["{when: true, then: {do: break}}", "else: {then: {do: fail}}"], ok(1), "ab", "ok"),
        (["{when: '{{ nothing.there }}', then: {do: fail}}"], ok(1), "abc", "ok"),
        (["{when: '{{ nothing.there != 1 }}', then: {do: fail}}"], ok(1), "ab", "error"),
        (["{when: '{{ 1 / 0 }}', then: {do: fail}}", "else: {then: {do: continue}}"], ok(1), "abc", "ok"),
        (["else: {then: {do: retry, attempts: 3}}"], BAD, "abbb", "error"),
        (["else: {then: {do: retry, attempts: 1}}"], BAD, "ab", "error"),
        (["else: {then: {do: retry, attempts: '{{ 1 + 1 }}'}}"], BAD, "abb", "error"),
        (["else: {then: {do: jump, to: nowhere}}"], ok(1), "ab", "error"),
        (["{when: '{{ outcome.error.kind == \"server_error\" }}', then: {do: break}}"], BAD, "ab", "ok"),
        (["{when: '{{ outcome.error.code == \"HTTP_503\" and outcome.error.retryable }}', then: {do: break}}"], BAD, "ab", "ok"),
        (["{when: '{{ _attempt == 1 and _task == \"b\" and outcome.meta.attempt == 1 }}', then: {do: break}}"], ok(1), "ab", "ok"),
    ],
)  # fmt: skip
def test_rules(rules: list[str], outcome: Outcome, labels: str, status: str) -> None:
    run = Run(ruled(*rules), {"b": [outcome]})
    end = run.result()
    assert ("".join(run.labels), end.status) == (labels, status)


def test_without_a_match_an_error_continues_unless_told_otherwise() -> None:
    never = "{when: false, then: {do: break}}"
    assert Run(ruled(never), {"b": [WRONG]}).result().status == "ok"
    assert Run(ruled(never, unmatched="fail"), {"b": [WRONG]}).result().error == {
        "kind": "client_error", "message": "no", "code": "HTTP_400", "task": "b",
    }  # fmt: skip
    assert Run(ruled(never, unmatched="fail"), {"b": [ok(1)]}).result().status == "ok"


@pytest.mark.parametrize(
    ("action", "outcome", "seen"),
    [
        ("continue", ok("B"), "B"),
        ("continue", BAD, "A"),
        ("skip", ok("B"), "A"),
        ("skip", BAD, "A"),
    ],
)
def test_what_the_next_task_sees_as_prev(action: str, outcome: Outcome, seen: str) -> None:
    run = Run(ruled(f"else: {{then: {{do: {action}}}}}"), {"a": [ok("A")], "b": [outcome]})
    run.result()
    assert run.ran[-1].fields == {"message": seen}


def test_break_succeeds_with_this_tasks_result() -> None:
    end = Run(ruled("else: {then: {do: break}}"), {"a": [ok({"a": 1})], "b": [ok({"b": 2})]}).result()
    assert (end.status, end.result["b"], end.result["results"]) == ("ok", 2, {"a": {"a": 1}, "b": {"b": 2}})


def test_a_pipeline_whose_last_task_was_skipped_is_skipped() -> None:
    skipping = "- {name: %s, kind: noop, spec: {policy: {rules: [{else: {then: {do: skip}}}]}}}"
    assert Run(tasks(skipping % "a")).result().status == "skipped"
    assert Run(tasks(skipping % "a" + "\n- b: {kind: noop}")).result().status == "ok"
    assert Run(tasks("- b: {kind: noop}\n" + skipping % "a")).result().status == "skipped"


def test_jump_to_previous_and_its_limits() -> None:
    again = "{when: '{{ outcome.result == \"again\" }}', then: {do: jump, to: previous}}"
    run = Run(ruled(again, "else: {then: {do: continue}}"), {"b": [ok("again"), ok("again"), ok("on")]})
    assert run.result().status == "ok"
    assert "".join(run.labels) == "abababc"
    first = tasks("- a: {kind: noop, spec: {policy: {rules: [{else: {then: {do: jump, to: previous}}}]}}}")
    end = Run(first).result()
    assert end.status == "error"
    assert "previous" in (end.error or {})["message"]


def test_a_jump_over_tasks_that_cannot_be_rendered_is_bounded_too() -> None:
    endless = tasks(
        "- a: {kind: noop, message: '{{ missing }}', spec: {policy: {rules: [{else: {then: {do: jump, to: a}}}]}}}"
    )
    end = advance(start(endless, Scopes(), info(settings={"limits": {"max_transitions": 5_000}})), START)
    assert isinstance(end, Finished)
    assert (end.error or {})["code"] == "MAX_TRANSITIONS"


def test_writes_see_the_old_values_and_come_before_the_action() -> None:
    rule = "else: {then: {do: continue, set: {ctx.x: '{{ ctx.y }}', ctx.y: '{{ ctx.x }}', step.n: 1, plain: 2}}}"
    pipeline = ruled(rule)
    run = Run(pipeline, scopes=Scopes(ctx={"x": "X", "y": "Y"}))
    end = run.result()
    assert end.writes == {"x": "Y", "y": "X", "plain": 2}
    assert end.scratch == {"n": 1}


def test_writes_are_kept_when_the_action_is_fail() -> None:
    end = Run(ruled("else: {then: {do: fail, set_ctx: {why: '{{ outcome.error.code }}'}}}"), {"b": [WRONG]}).result()
    assert (end.status, end.writes) == ("error", {"why": "HTTP_400"})


def test_a_task_writes_after_success_and_its_rules_see_it() -> None:
    rule = "{when: '{{ ctx.seen == 3 }}', then: {do: break, set: {ctx.twice: '{{ ctx.seen * 2 }}'}}}"
    pipeline = ruled(rule, extra="    set: {ctx.seen: '{{ output.n }}', ctx.data: '{{ output.data.n }}'}\n")
    end = Run(pipeline, {"b": [ok({"n": 3})]}).result()
    assert end.writes == {"seen": 3, "data": 3, "twice": 6}
    assert Run(pipeline, {"b": [WRONG]}).result().writes == {}


def test_writes_are_seen_by_later_tasks() -> None:
    pipeline = tasks("""
- a: {kind: noop, set: {ctx.deep.x: "{{ output.data }}", iter.y: 5, step.z: 6}}
- b: {kind: noop, message: "{{ ctx.deep.x }} {{ ctx.deep.old }} {{ vars.deep.x }} {{ iter.y }} {{ step.z }} {{ deep.x }}"}
""")
    run = Run(pipeline, {"a": [ok(7)]}, Scopes(ctx={"deep": {"old": 1}}))
    assert run.result().writes == {"deep.x": 7}
    assert run.ran[1].fields == {"message": "7 1 7 5 6 7"}


def test_the_order_of_writing_is_the_order_of_applying() -> None:
    pipeline = tasks("""
- a: {kind: noop, set: {ctx.m.k: 1}}
- b: {kind: noop, set: {ctx.m: {z: 0}}}
- c: {kind: noop, set: {ctx.m.k: 2}}
""")
    assert list(Run(pipeline).result().writes.items()) == [("m", {"z": 0}), ("m.k", 2)]


def test_a_secret_must_not_be_written_to_the_state() -> None:
    pipeline = tasks("- a: {kind: noop, set: {ctx.token: '{{ keychain.main.token }}'}}")
    end = Run(pipeline, scopes=Scopes(keychain={"main": {"token": "s3cret"}})).result()
    assert (end.status, end.writes) == ("error", {})
    assert "`auth`" in (end.error or {})["message"]
    assert "s3cret" not in str(end)


def test_an_undefined_value_fails_the_task() -> None:
    run = Run(tasks("- a: {kind: noop, set: {ctx.x: '{{ workload.orderz }}'}}"), scopes=Scopes(workload={"orders": 1}))
    end = run.result()
    assert (end.status, end.writes, (end.error or {})["kind"]) == ("error", {}, "template")
    assert "`set: ctx.x`: `workload.orderz` is undefined" in (end.error or {})["message"]
    assert "did you mean `orders`?" in (end.error or {})["message"]
    assert [record.event_type for record in run.records] == ["task.started", "task.failed"]


def test_an_undefined_value_in_a_rule_fails_the_task() -> None:
    run = Run(ruled("else: {then: {do: continue, set: {ctx.x: '{{ nothing }}', ctx.y: 1}}}"))
    end = run.result()
    assert (end.status, end.writes, (end.error or {})["kind"]) == ("error", {}, "template")
    assert "`set: ctx.x`" in (end.error or {})["message"]


def test_after_a_failure_what_cannot_be_read_is_skipped_with_a_record() -> None:
    rule = "else: {then: {do: continue, set: {ctx.x: '{{ output.data.none }}', ctx.y: '{{ outcome.error.kind }}'}}}"
    run = Run(ruled(rule), {"b": [failed("timeout", "no answer")]})
    assert (run.result().status, run.result().writes) == ("ok", {"y": "timeout"})
    [evaluated] = [record for record in run.records if record.event_type == "policy.task.evaluated"]
    [skipped] = evaluated.payload["skipped"]
    assert skipped["key"] == "ctx.x"
    assert "`outcome.result` is null" in skipped["reason"]


def test_with_loose_templates_an_undefined_value_is_null() -> None:
    run_info = info(settings={"strict_templates": False})
    pipeline = tasks("- a: {kind: noop, set: {ctx.x: '{{ output.data.none }}'}}")
    assert Run(pipeline, run_info=run_info).result().writes == {"x": None}


def test_a_condition_that_cannot_be_evaluated_may_fail_the_step() -> None:
    pipeline = ruled("{when: '{{ 1 / 0 }}', then: {do: break}}", "else: {then: {do: continue}}")
    assert Run(pipeline).result().status == "ok"
    end = Run(pipeline, run_info=info(settings={"on_when_error": "fail_step"})).result()
    assert (end.status, (end.error or {})["kind"]) == ("error", "template")


def test_retry_with_an_ok_outcome_fails_when_it_is_exhausted() -> None:
    end = Run(ruled("else: {then: {do: retry, attempts: 2}}"), {"b": [ok("pending")]}).result()
    assert (end.status, (end.error or {})["code"]) == ("error", "RETRIES_EXHAUSTED")


@pytest.mark.parametrize(
    "bad",
    [
        "attempts: '{{ outcome.error.message }}'",
        "attempts: 3, delay: '{{ nothing }}'",
        "attempts: 3, backoff: '{{ 1 }}'",
    ],
)
def test_a_retry_that_cannot_be_understood_fails_with_the_reason(bad: str) -> None:
    end = Run(ruled(f"else: {{then: {{do: retry, {bad}}}}}"), {"b": [WRONG]}).result()
    assert (end.status, (end.error or {})["kind"]) == ("error", "template")


def test_without_a_policy_retryable_errors_are_retried() -> None:
    pipeline = tasks("- a: {kind: http, url: x}")
    run = Run(pipeline, {"a": [BAD, BAD, ok(1)]})
    assert run.result().status == "ok"
    assert [task.attempt for task in run.ran] == [1, 2, 3]
    assert [task.attempt for task in _driven(pipeline, BAD)] == [1, 2, 3, 4, 5, 6]
    assert len(_driven(pipeline, WRONG)) == 1
    assert len(_driven(pipeline, BAD, settings={"retries": {"plugin": {"max_attempts": 2}}})) == 2


def _driven(pipeline: Any, outcome: Outcome, **more: Any) -> list[Any]:
    run = Run(pipeline, {"a": [outcome]}, run_info=info(**more))
    assert run.result().status == "error"
    return run.ran


def test_a_policy_decides_alone() -> None:
    run = Run(
        tasks("- a: {kind: http, url: x, spec: {policy: {rules: [{when: false, then: {do: fail}}]}}}"), {"a": [BAD]}
    )
    assert run.result().status == "ok"
    assert len(run.ran) == 1


def test_the_other_side_may_ask_for_more_time() -> None:
    limited = failed("rate_limit", "slow down", code="HTTP_429", retryable=True, retry_after=45)
    run = Run(tasks("- a: {kind: http, url: x}"), {"a": [limited, ok(1)]})
    assert run.result().status == "ok"
    assert [wait.until for wait in run.waits] == [START + 10 + 45_000]


@pytest.mark.parametrize(
    ("then", "waits"),
    [
        ("{do: retry, attempts: 2}", 45_000),
        ("{do: retry, attempts: 2, max_delay: 20}", 20_000),
        ("{do: retry, attempts: 2, delay: 5}", 5_000),
        ('{do: retry, attempts: 2, delay: "{{ outcome.error.retry_after + 1 }}"}', 46_000),
    ],
)
def test_a_rule_that_leaves_the_delay_open_waits_as_long_as_it_is_asked_to(then: str, waits: int) -> None:
    limited = failed("rate_limit", "slow down", code="HTTP_429", retryable=True, retry_after=45)
    rule = f"{{when: \"{{{{ outcome.status == 'error' }}}}\", then: {then}}}"
    run = Run(tasks(f"- a: {{kind: http, url: x, spec: {{policy: {{rules: [{rule}]}}}}}}"), {"a": [limited, ok(1)]})
    assert run.result().status == "ok"
    assert [wait.until for wait in run.waits] == [START + 10 + waits]


def test_a_rule_reads_the_class_of_an_error() -> None:
    rule = "{when: \"{{ outcome.error.class == 'SinkError' }}\", then: {do: skip}}"
    write = f"- a: {{kind: postgres, auth: x, table: t, values: {{n: 1}}, spec: {{policy: {{rules: [{rule}]}}}}}}"
    full = failed("db_constraint", "no room", code="PG_53100")
    assert Run(tasks(write), {"a": [full]}).result().status == "skipped"
