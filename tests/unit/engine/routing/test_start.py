"""Starts: the request, and what is refused before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.plan.plan import plan
from noetl.engine.routing.start import check
from noetl.model.errors import InvalidPayload
from noetl.model.messages import Start
from noetl.testing.play import BEGIN, Script, read
from tests.unit.engine.given import book, given

STEP = "- step: s\n  tool: {kind: noop}"
MANY = """
executor:
  spec:
    workload_schema:
      type: object
      properties: {g: {type: integer}, f: {type: integer}, e: {type: integer}, d: {type: integer}, c: {type: integer}, b: {type: integer}, a: {type: integer}}
"""


def checked(head: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
    return check(plan(read(book(STEP, head)), "hash"), "1", Start("m", "p", "hash", payload or {}), BEGIN)


def test_an_undefined_value_in_the_workload_is_refused_by_name() -> None:
    with pytest.raises(InvalidPayload, match=r"`workload\.x` cannot be evaluated: .*nothing"):
        checked('workload: {x: "{{ nothing.here }}"}')
    assert checked('workload: {x: "{{ nothing.here }}"}', {"x": 1}) == {"x": 1}
    assert checked("workload: {x: \"{{ nothing.here | default('n') }}\"}") == {"x": "n"}


def test_problems_of_a_payload_are_told_in_the_order_of_their_places() -> None:
    wrong = dict.fromkeys("gfedcba", "no")
    with pytest.raises(InvalidPayload) as refused:
        checked(MANY, wrong)
    words = str(refused.value)
    assert [part.partition(":")[0] for part in words.partition(": ")[2].split("; ")] == [
        f"workload.{name}" for name in "abcde"
    ]
    assert words.endswith("(and 2 more)")
    with pytest.raises(InvalidPayload) as refused:
        checked(MANY, dict.fromkeys("abcde", "no"))
    assert "more)" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-02-28T10:00:00Z", "2026-02-28"),
        ("uri", "https://example.org", "example.org"),
        ("hostname", "example.org", "-a"),
        ("uuid", "12345678-1234-5678-1234-567812345678", "1234"),
    ],
)
def test_the_format_of_a_text_is_checked(name: str, right: str, wrong: str) -> None:
    head = f"executor: {{spec: {{workload_schema: {{properties: {{x: {{format: {name}}}}}}}}}}}"
    assert checked(head, {"x": right}) == {"x": right}
    assert checked(head, {"x": 5}) == {"x": 5}
    with pytest.raises(InvalidPayload, match=rf"workload\.x: '{wrong}' is not a '{name}'"):
        checked(head, {"x": wrong})


@pytest.mark.parametrize("schema", ["{type: 7}", "{properties: []}"])
def test_a_schema_that_is_none_is_told(schema: str) -> None:
    with pytest.raises(InvalidPayload, match="is no JSON Schema"):
        checked(f"executor: {{spec: {{workload_schema: {schema}}}}}")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, {}),
        ({"parent": {"execution_id": "7", "run_id": "p#1"}}, {"parent": {"execution_id": "7", "run_id": "p#1"}}),
        ({"iter": {"x": 1}}, {"iter": {"x": 1}}),
        ({"tags": ("a",)}, {"tags": ["a"]}),
        ({"pool": "local:1"}, {"pool": "local:1"}),
        ({"priority": 3}, {"priority": 3}),
        ({"trace": "00-a"}, {"trace": "00-a"}),
    ],
)
def test_a_request_says_what_was_asked_for_and_nothing_else(more: dict[str, Any], said: dict[str, Any]) -> None:
    scene = given(book(STEP))
    scene.log.clear()
    scene.when(Start("start", "tests/test", "hash", {"n": 1}, **more))
    request = scene.log[0]
    assert request.event_type == "playbook.execution.requested"
    assert request.payload == {"path": "tests/test", "playbook": "hash", "payload": {"n": 1}, **said}


def test_a_refused_child_ends_failed_and_runs_nothing() -> None:
    scene = given(book(STEP, MANY))
    scene.log.clear()
    scene.when(Start("start", "tests/test", "hash", {"a": "no"}, {"execution_id": "7", "run_id": "p#1"}))
    kinds = [event.event_type for event in scene.log]
    assert kinds[:3] == ["playbook.execution.requested", "playbook.request.evaluated", "execution.cancelled"]
    assert not {"workflow.started", "token.created"} & set(kinds)
    evaluated, cancelled = scene.log[1], scene.log[2]
    assert (evaluated.status, evaluated.payload["workload"]) == ("refused", {})
    assert (cancelled.payload["cause"], cancelled.payload["outcome"]) == ("refused", "failed")
    assert cancelled.payload["error"]["code"] == "INVALID_PAYLOAD"
    assert scene.state.status == "failed"


SHARED = """
- {step: one, tool: {kind: noop, result: '{{ workload.deep }}'}, next: two}
- step: two
  tool: {kind: noop}
  set: {ctx.deep: '{{ workload.deep }}', ctx.deep.b: 9, ctx.deep.c.d: 9}
"""


def test_an_execution_does_not_change_the_workload_that_all_of_a_plan_share() -> None:
    text = book(SHARED, "workload: {deep: {b: 1, c: {d: 1}}, list: [1]}\n")
    script = Script(text, payload={"deep": {"c": {"e": 2}}}).run()
    assert script.state.workload == {"deep": {"b": 1, "c": {"d": 1, "e": 2}}, "list": [1]}
    plain = Script(text)
    plain.plan = script.plan
    plain.run()
    assert plain.state.ctx["deep"] == {"b": 9, "c": {"d": 9}}
    assert script.plan.fixed_workload == {"deep": {"b": 1, "c": {"d": 1}}, "list": [1]}
