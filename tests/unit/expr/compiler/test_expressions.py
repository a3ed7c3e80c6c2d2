"""Simple conditions compile into light closures; every way to evaluate agrees."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.expr import Budget, TemplateError, Undefined, compile_template
from noetl.expr.compiler.expressions import Compiler
from noetl.expr.template import Template
from tests.unit.expr import corpus


def is_light(source: str) -> bool:
    template = Template(source)
    body = template._body
    assert not isinstance(body, tuple)
    return Compiler().code(body).light


@pytest.mark.parametrize(
    "source",
    [
        "{{ outcome.status == 'error' and outcome.http.status in [429,500] }}", "{{ event.name == 'step.done' }}",
        "{{ ctx.a }}", "{{ not ctx.a or ctx.b != 5 }}", "{{ 5 < ctx.n <= 10 }}", "{{ ctx.rows | length > 0 }}",
        "{{ ctx.x is defined and ctx.x is not none }}", "{{ ctx.limit | default(10) }}",
        "{{ ctx.a if ctx.b else ctx.c }}", "{{ ctx.get('a', 5) }}", "{{ [ctx.a, ctx.b] }}",
    ],
)  # fmt: skip
def test_light(source: str) -> None:
    assert is_light(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ctx.a + 1 }}", "{{ ctx.a | upper }}", "{{ ctx.a == ctx.b }}", "{{ 'x' in ctx.a }}", "{{ (ctx.a, 1) }}",
        "{{ now() }}",
    ],
)  # fmt: skip
def test_what_may_cost_more_than_its_length_is_not_light(source: str) -> None:
    assert not is_light(source)


def outcome(source: str, **options: Any) -> tuple[str, str]:
    template = compile_template(source)
    try:
        return "value", repr(template.evaluate(corpus.data(), **options))
    except TemplateError as error:
        return "error", f"{type(error).__name__} {error.message} {error.offset}"


def traced(source: str) -> tuple[str, str]:
    try:
        return "value", repr(compile_template(source).evaluate_traced(corpus.data())[0])
    except TemplateError as error:
        return "error", f"{type(error).__name__} {error.message} {error.offset}"


@pytest.mark.parametrize("source", [*corpus.same(), *corpus.different()])
def test_every_way_to_evaluate_gives_the_same(source: str) -> None:
    assert outcome(source) == outcome(source, budget=Budget()) == traced(source)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{{ x in [1, 'a', none] }}", True),
        ("{{ x not in [1, 'a'] }}", True),
        ("{{ y in ['a', 1] }}", False),
        ("{{ y not in ['a', 1] }}", True),
        ("{{ 5 > z }}", True),
        ("{{ 5 == z }}", False),
        ("{{ nope in ['a'] }}", False),
    ],
)
def test_constants_are_compared_directly(source: str, value: bool) -> None:
    assert compile_template(source).evaluate({"x": None, "y": [1], "z": 4}) is value


def test_a_list_is_new_each_time() -> None:
    template = compile_template("{{ [1, 2] }}")
    first = template.evaluate({})
    first.append(3)
    assert template.evaluate({}) == [1, 2]
    fallback = compile_template("{{ nope | default([]) }}")
    fallback.evaluate({}).append(1)
    assert fallback.evaluate({}) == []


def test_a_choice_gives_the_value_of_its_branch() -> None:
    template = compile_template("{{ 'a' if x == 1 else 'b' if x == 2 else 'c' }}")
    assert [template.evaluate({"x": x}) for x in (1, 2, 3)] == ["a", "b", "c"]
    assert isinstance(compile_template("{{ 'a' if x }}").evaluate({"x": 0}), Undefined)
