"""Results are views under their root name, and plain data everywhere else."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.expr import Envelope, Result, Undefined, compile_template

HTTP = {"status_code": 200, "headers": {"x": "y"}, "data": {"items": [1, 2], "total": 2}}
SCOPE: dict[str, Any] = {
    "fetch": Result(HTTP),
    "plain": Result({"field": 1, "rows": [{"x": 5}]}),
    "listed": Result([{"id": 1}, {"id": 2}]),
    "number": Result(7),
    "nothing": Result(None),
    "wrapped": Result({"data": [1, 2, 3]}),
    "outcome": Envelope({"status": "ok", "result": HTTP, "error": None, "http": {"status": 200}}),
    "output": Envelope({"status": "ok", "data": HTTP, "error": None}),
    "failed": Envelope({"status": "error", "error": {"kind": "timeout"}}),
    "items_output": Envelope({"status": "ok", "data": {"rows": [{"x": 5}]}}),
    "scalar": Envelope({"status": "ok", "result": 7}),
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        # a key of the result, or `data` for the result itself
        ("plain.field", 1),
        ("plain.data.field", 1),
        ("plain['data']['rows'][0].x", 5),
        ("plain.data", {"field": 1, "rows": [{"x": 5}]}),
        ("number.data", 7),
        ("listed.data", [{"id": 1}, {"id": 2}]),
        ("listed[1].id", 2),
        ("listed.data[1].id", 2),
        ("nothing.data", None),
        # a result that has `data`: the key wins, and what is missing is looked for in it
        ("fetch.data", {"items": [1, 2], "total": 2}),
        ("fetch.data.items", [1, 2]),
        ("fetch.items", [1, 2]),
        ("fetch.total", 2),
        ("fetch.status_code", 200),
        ("wrapped.data", [1, 2, 3]),
        # envelopes: `data` and `result` are the result, what is missing is looked for in it
        ("outcome.status", "ok"),
        ("outcome.http.status", 200),
        ("outcome.result.status_code", 200),
        ("outcome.data.status_code", 200),
        ("outcome.status_code", 200),
        ("output.data.status_code", 200),
        ("output.result.status_code", 200),
        ("output.data.data.items", [1, 2]),
        ("output.data.items", [1, 2]),
        ("output.items", [1, 2]),
        ("output.error", None),
        ("items_output.data.rows[0].x", 5),
        ("items_output.rows[0].x", 5),
        ("failed.error.kind", "timeout"),
        ("scalar.data", 7),
        ("scalar.result", 7),
        ("scalar.data.data", 7),
        ("outcome.result", HTTP),
        # every other use is the plain data
        ("fetch", HTTP),
        ("outcome | length", 4),
        ("'total' in fetch", False),
        ("'data' in output", True),
        ("'result' in output", False),
        ("fetch | list", ["status_code", "headers", "data"]),
        ("listed | map(attribute='id') | list", [1, 2]),
        ("number + 1", 8),
        ("[number]", [7]),
        ("{'a': plain}.a.field", 1),
        ("fetch['to' ~ 'tal'] is defined", False),
        ("(fetch | default({})).total is defined", False),
        ("fetch.keys()", ["status_code", "headers", "data"]),
        ("fetch == fetch", True),
        ("number == 7", True),
        ("number in [7]", True),
        ("scalar.data == 7", True),
        ("not nothing", True),
    ],
)  # fmt: skip
def test_view(expression: str, value: Any) -> None:
    template = compile_template("{{ " + expression + " }}")
    assert template.evaluate(SCOPE) == value
    assert template.evaluate_traced(SCOPE)[0] == value


@pytest.mark.parametrize(
    "expression",
    [
        "plain.zz", "plain.data.zz", "fetch.zz", "output.zz", "outcome.data.zz", "failed.data", "failed.zz",
        "number.x", "listed[9]", "nothing.x",
    ],
)  # fmt: skip
def test_what_is_nowhere_is_undefined(expression: str) -> None:
    value = compile_template("{{ " + expression + " }}").evaluate(SCOPE)
    assert isinstance(value, Undefined)


def test_a_missing_key_names_what_there_is() -> None:
    value = compile_template("{{ plain.feld }}").evaluate(SCOPE)
    assert isinstance(value, Undefined)
    assert value.candidates == ("field",)


def test_a_view_that_is_assigned_or_iterated_is_plain_data() -> None:
    assert compile_template("{% set x = fetch %}{{ x.total }}|{{ x.data.total }}").evaluate(SCOPE) == "|2"
    assert compile_template("{% for k in fetch %}{{ k }},{% endfor %}").evaluate(SCOPE) == "status_code,headers,data,"
    assert compile_template("{{ number }}!{{ nothing }}").evaluate(SCOPE) == "7!None"


def test_the_repr_of_a_view_shows_what_is_in_it() -> None:
    assert repr(Result(1)) == "Result(1)"
    assert repr(Envelope({"a": 1})) == "Envelope({'a': 1})"


@pytest.mark.parametrize(
    ("value", "expression", "expected"),
    [
        ({"id": 7}, "fetch.results.fetch_task.id", 7),
        ({"id": 7}, "fetch.fetch_task.id", 7),
        ([1, 2], "fetch.results.fetch_task[1]", 2),
        (5, "fetch.results.fetch_task", 5),
        ({"data": {"results": [1]}}, "fetch.results", [1]),
        ({"results": [3]}, "fetch.results[0]", 3),
    ],
)
def test_the_result_of_one_task_is_found_by_its_label(value: Any, expression: str, expected: Any) -> None:
    scope = {"fetch": Result(value, "fetch_task")}
    assert compile_template(f"{{{{ {expression} }}}}").evaluate(scope) == expected


def test_a_label_is_no_key_beside_results() -> None:
    scope = {"fetch": Result({"results": {"a": 1}}, "fetch_task")}
    assert isinstance(compile_template("{{ fetch.fetch_task }}").evaluate(scope), Undefined)
