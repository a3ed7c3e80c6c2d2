"""The names that templates see on a worker, undefined values, and workbook calls."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.pipeline.pipeline import Pipeline, advance, restore, resume, start, wake
from noetl.engine.tasks.actions import Finished, RunTask, Suspend
from noetl.engine.tasks.run_info import RunInfo, Scopes, for_step
from noetl.engine.tasks.task_plan import Layered
from noetl.model.outcome import failed, ok
from tests.unit.engine.pipeline.piping import START, Run, info, playbook, tasks

SCOPES = Scopes(
    workload={"city": "Bern", "both": "workload"},
    ctx={"n": 3, "both": "ctx"},
    args={"page": 2},
    steps={"load": {"rows": [1, 2], "data": {"inner": 5}}, "both": 1},
    statuses={"load": "ok", "bad": "error"},
    iter={"parent": {"index": 4}},
    keychain={"api": {"token": "t0"}},
)


def message(text: str, scopes: Scopes = SCOPES, **more: Any) -> Any:
    pipeline = tasks("- a: {kind: noop}\n- b: {kind: noop, message: 'X'}")
    fields = pipeline[1].fields
    fields["message"] = type(fields["message"])(text)
    run = Run(pipeline, {"a": [ok({"x": {"y": 1}, "items": [9]})]}, scopes, info(**more))
    end = run.result()
    assert end.status == "ok", end.error
    return run.ran[1].fields["message"]


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ workload.city }}", "Bern"),
        ("{{ city }}", "Bern"),
        ("{{ ctx.n }}{{ vars.n }}{{ n }}", "333"),
        ("{{ both }}", "ctx"),
        ("{{ args.page }}", 2),
        ("{{ page }}", 2),
        ("{{ input.page }}", 2),
        ("{{ load.rows[1] }}", 2),
        ("{{ load.data.inner }}", 5),
        ("{{ load.inner }}", 5),
        ("{{ a.x.y }}", 1),
        ("{{ a.data.x.y }}", 1),
        ("{{ a.items }}", [9]),
        ("{{ _prev.x.y }}", 1),
        ("{{ _prev.data.x }}", {"y": 1}),
        ("{{ _prev }}", {"x": {"y": 1}, "items": [9]}),
        ("{{ _task }}{{ _attempt }}", "b1"),
        ("{{ _idempotency_key }}", "42:s:b"),
        ("{{ execution_id }}", "42"),
        ("{{ execution_id[:1] }}", "4"),
        ("{{ job.uuid }}", "42"),
        ("{{ keychain.api.token }}", "t0"),
        ("{{ iter.parent.index }}", 4),
        ("{{ done('load') }}{{ ok('load') }}{{ fail('load') }}", "TrueTrueFalse"),
        ("{{ done('bad') }}{{ ok('bad') }}{{ fail('bad') }}{{ done('never') }}", "TrueFalseTrueFalse"),
        ("{{ now() }}", "2023-11-14T22:13:20.010000+00:00"),
        ("{{ missing | default('d') }}", "d"),
        ("no template", "no template"),
    ],
)
def test_names(template: str, value: Any) -> None:
    assert message(template) == value


def test_args_come_before_ctx() -> None:
    assert message("{{ x }}", Scopes(args={"x": "args"}, ctx={"x": "ctx"})) == "args"


def test_a_uuid_is_the_same_for_every_try_and_another_for_every_place() -> None:
    text = "- a: {kind: noop, message: '{{ gen_uuid() }} {{ gen_uuid() }}', result: '{{ gen_uuid() }}'}"

    def made(**more: Any) -> list[str]:
        action = advance(start(tasks(text), Scopes(), info(**more)), START)
        assert isinstance(action, RunTask)
        return [*action.fields["message"].split(), action.fields["result"]]

    assert made() == made()
    assert len({*made(), *made(index=1), *made(number=2), *made(execution_id="43")}) == 12


@pytest.mark.parametrize(
    ("field", "named", "near"),
    [
        ("message: '{{ ctx.totl }}'", "`message`: `ctx.totl` is undefined", "total"),
        ("message: 'text {{ wrkload.x }}'", "`wrkload.x`", "workload"),
        ("result: {deep: [{x: '{{ ctx.totl }}'}]}", "`result.deep[0].x`", "total"),
        ("message: '{{ _prev.x }}'", "`_prev.x`", "default"),
        ("args: {v: '{{ args.nothing }}'}", "`input.v`", "default"),
    ],
)
def test_an_undefined_value_names_the_field_and_the_nearest_name(field: str, named: str, near: str) -> None:
    run = Run(tasks(f"- a: {{kind: noop, {field}}}"), scopes=Scopes(ctx={"total": 1}))
    end = run.result()
    assert (run.ran, end.status, (end.error or {})["kind"]) == ([], "error", "template")
    assert named in (end.error or {})["message"]
    assert near in (end.error or {})["message"]


def test_lenient_templates_render_nothing() -> None:
    pipeline = tasks(
        "- a: {kind: noop, message: 'x{{ absent }}y', result: '{{ absent.at.all }}', spec: {strict_templates: false}}"
    )
    run = Run(pipeline)
    run.result()
    assert run.ran[0].fields == {"message": "xy", "result": None}


def test_a_template_error_is_an_outcome_that_a_policy_sees() -> None:
    text = "{kind: noop, message: '{{ 1 / 0 }}', spec: {policy: {rules: [{when: '{{ outcome.error.kind == \"template\" }}', then: {do: break}}]}}}"
    run = Run(tasks(f"- a: {text}"))
    assert run.result().status == "ok"
    assert run.ran == []


def test_code_is_left_alone_and_gets_everything() -> None:
    pipeline = tasks("- a: {kind: noop}\n- b: {kind: python, code: 'x = \"{{ not_a_template }}\"', args: {v: 1}}")
    run = Run(pipeline, {"a": [ok(5)]}, SCOPES)
    run.result()
    task = run.ran[1]
    assert task.fields == {"code": 'x = "{{ not_a_template }}"'}
    assert task.input == {"page": 2, "v": 1}
    assert (task.context["ctx"]["n"], task.context["a"], task.context["load"]["rows"]) == (3, 5, [1, 2])
    assert "t0" not in str(task.context)


def test_the_input_of_a_step_lies_between_args_and_the_tasks_own() -> None:
    step = playbook("""
workflow:
  - step: s
    input: {page: "{{ args.page + 1 }}", size: "{{ ctx.n }}"}
    tool:
      - a: {kind: noop, set: {ctx.n: 9}}
      - b: {kind: noop, args: {size: "{{ input.size + input.page }}"}, message: "{{ input.size }}"}
""").workflow[0]
    run = Run(step.tasks, scopes=SCOPES, run_info=info(input=step.input))
    run.result()
    assert run.ran[0].input == {"page": 3, "size": 3}
    assert run.ran[1].input == {"page": 3, "size": 6}
    assert run.ran[1].fields == {"message": 6}


def test_sql_is_written_by_place_and_percent_signs_by_driver() -> None:
    text = """
- a: {kind: postgres, auth: pg, query: "SELECT * FROM {{ t }} WHERE x = '{{ v }}' AND y = {{ v }}"}
- b: {kind: postgres, auth: pg, query: "SELECT {{ v }}, %(p)s", params: {p: "{{ v }}"}}
- c: {kind: duckdb, commands: ["SELECT {{ v }}", "SELECT {{ back }}"]}
"""
    run = Run(tasks(text), scopes=Scopes(workload={"t": "s.t", "v": "50% o'x", "back": "a\\b"}))
    run.result()
    assert run.ran[0].fields["query"] == """SELECT * FROM "s"."t" WHERE x = '50% o''x' AND y = '50% o''x'"""
    assert run.ran[1].fields == {"query": "SELECT '50%% o''x', %(p)s", "params": {"p": "50% o'x"}}
    assert run.ran[2].fields == {"commands": ["SELECT '50% o''x'", "SELECT 'a\\b'"]}


def test_undefined_values_in_sql() -> None:
    strict = Run(tasks("- a: {kind: duckdb, query: 'SELECT {{ absent }}'}")).result()
    assert (strict.status, (strict.error or {})["kind"]) == ("error", "template")
    run = Run(tasks("- a: {kind: duckdb, query: 'SELECT {{ absent }}', spec: {strict_templates: false}}"))
    run.result()
    assert run.ran[0].fields == {"query": "SELECT NULL"}


def test_settings_are_layered() -> None:
    book = playbook("""
executor: {spec: {durability: task, retries: {plugin: {max_attempts: 2, base_ms: 1}}}}
workflow:
  - step: s
    spec: {retries: {plugin: {base_ms: 5}}, timeouts: {tool_default_ms: 9}}
    loop: {in: [1], iterator: x, spec: {timeouts: {tool_default_ms: 8}}}
    tool: {kind: noop}
""")
    layered = Layered({"durability": "step", "strict_templates": True}).over(book.executor.spec)
    found = for_step(info(), book.workflow[0], layered).settings
    assert found["durability"] == "task"
    assert found["strict_templates"] is True
    assert found["retries"] == {"plugin": {"max_attempts": 2, "base_ms": 5}}
    assert found["timeouts"] == {"tool_default_ms": 8}


WORKBOOK = playbook("""
workbook:
  - add: {kind: noop, message: "{{ input.a + input.b }} {{ workload.city }} {{ ctx.n }}"}
  - peek: {kind: noop, message: "{{ iter.parent }}"}
  - bare: {kind: noop, message: "{{ page }}"}
  - writes: {kind: noop, set: {ctx.x: 1}}
  - twice:
      kind: noop
      spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 2}}]}}
  - pause: {kind: wait, signal: go}
  - soon: {kind: noop, timeout_ms: 30}
  - limited: {kind: workbook, task: pause, timeout_ms: 50}
  - outer: {kind: workbook, task: add, args: {a: 1, b: "{{ input.b }}"}}
  - again: {kind: workbook, task: again}
workflow:
  - step: s
    tool: {kind: noop}
""").workbook


def called(text: str, outcomes: Any = None, scopes: Scopes = SCOPES) -> Run:
    return Run(tasks(text), outcomes, scopes, info(workbook=WORKBOOK))


def test_a_call_sees_its_input_and_nothing_of_the_caller() -> None:
    run = called("- t: {kind: workbook, task: add, args: {a: 1, b: '{{ ctx.n }}'}}", {"add": [ok({"sum": 4})]})
    assert run.result().result == {"sum": 4, "t": {"sum": 4}, "results": {"t": {"sum": 4}}}
    (task,) = run.ran
    assert (task.label, task.kind, task.idempotency_key) == ("t/add", "noop", "42:s:t:add")
    assert task.fields == {"message": "4 Bern 3"}
    assert "iter" in (called("- t: {kind: workbook, task: peek}").result().error or {})["message"]
    assert "page" in (called("- t: {kind: workbook, task: bare}").result().error or {})["message"]


def test_the_outcome_of_the_inner_task_is_the_outcome_of_the_call() -> None:
    bad = failed("client_error", "no", code="C")
    policy = "spec: {policy: {rules: [{when: '{{ outcome.error.code == \"C\" }}', then: {do: break, set_ctx: {seen: true}}}]}}"
    end = called("- t: {kind: workbook, task: add, args: {a: 1, b: 1}, " + policy + "}", {"add": [bad]}).result()
    assert (end.status, end.writes) == ("ok", {"seen": True})
    end = called("- t: {kind: workbook, task: add, args: {a: 1, b: 1}}", {"add": [bad]}).result()
    assert end.error == {"kind": "client_error", "message": "no", "code": "C", "task": "t"}


def test_the_inner_policy_is_followed() -> None:
    run = called("- t: {kind: workbook, task: twice}", {"twice": [failed("unknown", "x"), ok(2)]})
    assert run.result().result == 2
    assert [(task.attempt, task.idempotency_key) for task in run.ran] == [(1, "42:s:t:twice"), (2, "42:s:t:twice")]


@pytest.mark.parametrize(
    ("task", "words"),
    [("writes", "must not write `ctx.x`"), ("absent", "no task `absent`"), ("again", "call each other")],
)
def test_calls_that_cannot_be(task: str, words: str) -> None:
    end = called(f"- t: {{kind: workbook, task: {task}}}").result()
    assert (end.status, words in (end.error or {})["message"]) == ("error", True)


def test_calls_may_call() -> None:
    run = called("- t: {kind: workbook, task: outer, args: {b: 5}}")
    assert run.result().status == "ok"
    assert (run.ran[0].label, run.ran[0].fields) == ("t/outer/add", {"message": "6 Bern 3"})


def test_a_call_may_suspend_and_go_on_elsewhere() -> None:
    given: RunInfo = info(workbook=WORKBOOK)
    pipeline: Pipeline = start(tasks("- t: {kind: workbook, task: pause}"), SCOPES, given)
    assert advance(pipeline, START) == Suspend("wait", signal="go")
    snapshot = pipeline.snapshot()
    assert "t0" not in str(snapshot)
    other = restore(pipeline.tasks, snapshot, SCOPES, given)
    end = wake(other, {"by": "signal", "data": 8}, START + 5)
    assert isinstance(end, Finished)
    assert end.result == 8


def test_resume_reaches_the_inner_task() -> None:
    pipeline = start(tasks("- t: {kind: workbook, task: add, args: {a: 1, b: 2}}"), SCOPES, info(workbook=WORKBOOK))
    assert isinstance(advance(pipeline, START), RunTask)
    other = restore(pipeline.tasks, pipeline.snapshot(), SCOPES, pipeline.info)
    end = resume(other, ok("three"), START)
    assert isinstance(end, Finished)
    assert end.result == "three"


def _limited(text: str, settings: Any = None) -> Pipeline:
    return start(tasks(text), SCOPES, info(workbook=WORKBOOK, settings=settings or {}))


@pytest.mark.parametrize(
    ("call", "limit"),
    [
        ("task: twice, timeout_ms: 200", 200),
        ("task: twice, timeout_ms: '{{ input.most }}', args: {most: 150}", 150),
        ("task: twice, spec: {timeout: 2}", 2000),
        ("task: twice", 9000),
        ("task: soon, timeout_ms: 200", 30),
        ("task: soon, timeout_ms: 20", 20),
    ],
)
def test_a_call_limits_what_it_calls(call: str, limit: float) -> None:
    """The shorter time-out holds; the default of tools is for the called task."""
    pipeline = _limited(f"- t: {{kind: workbook, {call}}}", {"timeouts": {"tool_default_ms": 9000}})
    action = advance(pipeline, START)
    assert isinstance(action, RunTask)
    assert action.timeout_ms == limit


def test_what_is_left_of_a_call_is_for_the_next_attempt_and_then_it_is_over() -> None:
    pipeline = _limited("- t: {kind: workbook, task: twice, timeout_ms: 200}")
    advance(pipeline, START)
    action = resume(pipeline, failed("unknown", "x"), START + 199)
    assert isinstance(action, RunTask)
    assert (action.attempt, action.timeout_ms) == (2, 1)
    again = _limited("- t: {kind: workbook, task: twice, timeout_ms: 200}")
    advance(again, START)
    end = resume(again, failed("unknown", "x"), START + 200)
    assert isinstance(end, Finished)
    assert (end.error or {})["kind"] == "timeout"
    assert "`twice` took longer than its time-out of 0.2 s" in (end.error or {})["message"]
    assert (end.error or {})["retryable"] is True


def test_a_result_that_is_there_is_taken_even_if_it_is_late() -> None:
    pipeline = _limited("- t: {kind: workbook, task: twice, timeout_ms: 200}")
    advance(pipeline, START)
    end = resume(pipeline, ok(2), START + 300)
    assert isinstance(end, Finished)
    assert end.result == 2


def test_a_call_that_waits_ends_with_the_nearest_time_out_around_it() -> None:
    pipeline = _limited("- t: {kind: workbook, task: limited, timeout_ms: 80}")
    assert advance(pipeline, START) == Suspend("wait", until=START + 50, signal="go")
    other = restore(pipeline.tasks, pipeline.snapshot(), SCOPES, pipeline.info)
    assert other.due == START + 50
    end = wake(other, {"by": "timer"}, START)  # the server's clock is ahead of this worker's
    assert isinstance(end, Finished)
    assert "`pause` took longer than its time-out of 0.05 s" in (end.error or {})["message"]
    assert (end.error or {})["task"] == "t"


def test_a_time_out_of_a_call_that_is_no_number_is_told() -> None:
    end = advance(_limited("- t: {kind: workbook, task: twice, timeout_ms: '{{ workload.city }}'}"), START)
    assert isinstance(end, Finished)
    assert "timeout_ms" in (end.error or {})["message"]
