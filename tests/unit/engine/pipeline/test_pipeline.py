"""Pipelines: order, results, keys, the shape of what a tool is given."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from noetl.engine.pipeline.pipeline import advance, resume, start
from noetl.engine.tasks.actions import Finished, RunTask
from noetl.engine.tasks.run_info import Scopes
from noetl.model.outcome import failed, ok
from tests.unit.engine.pipeline.piping import START, Run, info, playbook, tasks

THREE = tasks("- a: {kind: noop}\n- b: {kind: noop}\n- c: {kind: noop}")


def test_tasks_run_in_order_and_the_last_result_leads() -> None:
    run = Run(THREE, {"a": [ok({"x": 1})], "b": [ok({"y": 2})], "c": [ok({"z": 3})]})
    end = run.result()
    assert run.labels == ["a", "b", "c"]
    assert end.status == "ok"
    results = {"a": {"x": 1}, "b": {"y": 2}, "c": {"z": 3}}
    assert end.result == {"z": 3, "results": results, **results}


def test_own_keys_of_the_last_result_win_over_labels() -> None:
    end = Run(THREE, {"a": [ok(1)], "b": [ok(2)], "c": [ok({"a": "own", "results": [7]})]}).result()
    assert end.result == {"a": "own", "b": 2, "c": {"a": "own", "results": [7]}, "results": [7]}


def test_a_last_result_that_is_no_map_is_data() -> None:
    end = Run(THREE, {"a": [ok(1)], "b": [ok(2)], "c": [ok([3])]}).result()
    assert end.result == {"data": [3], "a": 1, "b": 2, "c": [3], "results": {"a": 1, "b": 2, "c": [3]}}


def test_a_lone_task_without_a_label_gives_its_result_as_it_is() -> None:
    pipeline = playbook("workflow:\n  - step: s\n    tool: {kind: noop}").workflow[0].tasks
    assert Run(pipeline, {"s_task": [ok({"x": 1})]}).result().result == {"x": 1}


def test_a_lone_task_with_a_label_is_found_by_it() -> None:
    end = Run(tasks("- a: {kind: noop}"), {"a": [ok({"x": 1})]}).result()
    assert end.result == {"x": 1, "a": {"x": 1}, "results": {"a": {"x": 1}}}
    assert Run(tasks("- a: {kind: noop}"), {"a": [ok([1])]}).result().result == [1]


def test_a_failure_ends_it_and_keeps_the_body_of_the_error() -> None:
    run = Run(THREE, {"b": [failed("client_error", "no", code="HTTP_400", result={"why": "x"})]})
    end = run.result()
    assert (run.labels, end.status, end.result) == (["a", "b"], "error", {"why": "x"})
    assert end.error == {"kind": "client_error", "message": "no", "code": "HTTP_400", "task": "b"}


def test_no_tasks_end_at_once() -> None:
    assert advance(start((), Scopes(), info()), START) == Finished("ok")


def test_an_ended_pipeline_stays_ended() -> None:
    run = Run(THREE)
    run.result()
    end = run.pipeline.ending
    assert advance(run.pipeline, START + 1) is end
    assert resume(run.pipeline, ok(1), START + 1) is end


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({}, "42:s:a"),
        ({"number": 3}, "42:s#3:a"),
        ({"index": 5}, "42:s:5:a"),
        ({"index": 5, "item_key": "row-9"}, "42:s:row-9:a"),
    ],
)
def test_keys_name_the_piece_of_work(more: dict[str, object], key: str) -> None:
    action = advance(start(THREE, Scopes(), info(**more)), START)
    assert isinstance(action, RunTask)
    assert action.idempotency_key == key


def test_what_a_tool_is_given() -> None:
    pipeline = tasks("""
- call:
    kind: http
    method: POST
    url: "https://x/{{ workload.id }}"
    json: "{{ _prev }}"
    auth: "{{ workload.credential }}"
    timeout: 2
    idempotent: true
    args: {b: "{{ input.a + 1 }}"}
""")
    scopes = Scopes(workload={"id": 7, "credential": "main"}, args={"a": 1})
    action = advance(start(pipeline, scopes, info(settings={"retries": {"plugin": {"max_attempts": 2}}})), START)
    assert isinstance(action, RunTask)
    assert action.fields == {"method": "POST", "url": "https://x/7", "json": None}
    assert (action.auth, action.timeout_ms, action.attempt, action.kind) == ("main", 2000, 1, "http")
    assert (action.input, action.own) == ({"a": 1, "b": 2}, {"b": 2})
    assert action.spec == {"retries": {"plugin": {"max_attempts": 2}}, "idempotent": True}
    assert action.context == {}


@pytest.mark.parametrize(
    ("field", "settings", "timeout"),
    [
        ("timeout_ms: 1500", {}, 1500),
        ('timeout_ms: "{{ 2 * 100 }}"', {}, 200),
        ("spec: {timeout: 3}", {}, 3000),
        ("spec: {timeout: {connect: 1, total: 4}}", {}, 4000),
        ("desc: none", {"timeouts": {"tool_default_ms": 250}}, 250),
        ("timeout_ms: 9", {"timeouts": {"tool_default_ms": 250}}, 9),
        ("desc: none", {}, None),
    ],
)
def test_time_outs(field: str, settings: dict[str, object], timeout: float | None) -> None:
    action = advance(start(tasks(f"- a:\n    kind: noop\n    {field}"), Scopes(), info(settings=settings)), START)
    assert isinstance(action, RunTask)
    assert action.timeout_ms == timeout


def test_a_stored_result_is_seen_by_value_and_travels_by_reference() -> None:
    pipeline = start(tasks('- a: {kind: noop}\n- b: {kind: noop, message: "{{ _prev.rows[0] }}"}'), Scopes(), info())
    advance(pipeline, START)
    reference = {"kind": "result_ref", "ref": "noetl://x"}
    action = resume(pipeline, ok({"rows": ["one"]}), START, stored=reference)
    assert isinstance(action, RunTask)
    assert action.fields == {"message": "one"}
    assert "one" not in str(pipeline.snapshot())
    end = resume(pipeline, ok({"y": 1}), START)
    assert isinstance(end, Finished)
    assert end.result["results"] == {"a": reference, "b": {"y": 1}}


def test_items_of_a_loop_have_their_own_pipeline() -> None:
    pipeline = tasks(
        '- a: {kind: noop, message: "{{ iter.row }}{{ row }}{{ iter.index }}{{ loop_index }}{{ iter.last }}"}'
    )
    scopes = Scopes(iter={"parent": {"index": 3}}).item("row", "r", 1, 2)
    action = advance(start(pipeline, scopes, replace(info(), index=1)), START)
    assert isinstance(action, RunTask)
    assert action.fields == {"message": "rr11True"}
