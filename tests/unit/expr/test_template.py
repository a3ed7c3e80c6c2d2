"""Kind, value and truth of a template, and the options of an evaluation."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from noetl.expr import (
    EvaluationError,
    Template,
    TemplateError,
    Undefined,
    UndefinedError,
    compile_condition,
    compile_template,
    first_undefined,
)
from noetl.expr.template import _Cache


@pytest.mark.parametrize(
    ("source", "kind", "value"),
    [
        ("plain text", "plain", "plain text"),
        ("plain\n", "plain", "plain\n"),
        ("{ x } }}", "plain", "{ x } }}"),
        ("", "plain", ""),
        ("{{ 1 }}", "expression", 1),
        ("  {{ 1 }}\n", "expression", 1),
        ("{# why #}{{ [1, none] }}", "expression", [1, None]),
        ("{{ '1' }}", "expression", "1"),
        ("{{ 1 }}{{ 2 }}", "text", "12"),
        ("x{{ 1 }}", "text", "x1"),
        ("{% if true %}1{% endif %}", "text", "1"),
        ("{# only a comment #}", "text", ""),
        ("{% raw %}{{ x }}{% endraw %}", "text", "{{ x }}"),
        ("a\n{{ 1 }}\n", "text", "a\n1"),
    ],
)
def test_kind_and_value(source: str, kind: str, value: Any) -> None:
    template = compile_template(source)
    assert template.kind == kind
    result = template.evaluate({})
    assert result == value
    assert type(result) is type(value)


def test_templates_are_kept_and_do_not_change() -> None:
    template = compile_template("{{ a }}")
    assert compile_template("{{ a }}") is template
    with pytest.raises(AttributeError):
        template.source = "x"
    with pytest.raises(AttributeError):
        template.reads = ()


def test_large_templates_are_kept_too() -> None:
    source = "x" * 10_000 + "{{ a }}"
    assert compile_template(source) is compile_template(source)


def test_an_undefined_value_is_returned_with_its_path() -> None:
    value = compile_template("{{ ctx.user.nmae }}").evaluate({"ctx": {"user": {"name": "Ada"}}})
    assert isinstance(value, Undefined)
    assert value.path == ("ctx", "user", "nmae")
    assert value.candidates == ("name",)


def test_undefined_values_are_found_anywhere_in_a_value() -> None:
    value = compile_template("{{ {'a': [1, ctx.x], 'b': ctx.y} }}").evaluate({"ctx": {}})
    missing = first_undefined(value)
    assert missing is not None
    assert missing.path == ("ctx", "x")
    assert first_undefined({"a": [1, None, ""]}) is None


@pytest.mark.parametrize(
    "source", ["x{{ nope }}", "{{ 'x' ~ nope }}", "{{ nope | upper }}", "x{{ [nope] }}", "{{ nope | list }}"]
)
def test_strict_refuses_what_would_vanish(source: str) -> None:
    template = compile_template(source)
    template.evaluate({})
    with pytest.raises(UndefinedError, match="nope"):
        template.evaluate({}, strict=True)


@pytest.mark.parametrize("source", ["x{{ nope | default('') }}", "{{ nope is defined }}", "{% if nope %}x{% endif %}"])
def test_strict_leaves_expected_gaps_alone(source: str) -> None:
    compile_template(source).evaluate({}, strict=True)


def test_functions_come_with_the_evaluation() -> None:
    moment = datetime(2024, 5, 6, tzinfo=UTC)
    template = compile_template("{{ [now(), done('a'), gen_uuid()] }}")
    functions: dict[str, Callable[..., Any]] = {
        "now": lambda: moment,
        "done": lambda step: step == "a",
        "gen_uuid": lambda: "id-1",
    }
    assert template.evaluate({}, functions=functions) == [moment, True, "id-1"]
    with pytest.raises(EvaluationError, match=r"now\(\)"):
        template.evaluate({})


def test_a_trace_tells_what_was_read() -> None:
    scope = {"outcome": {"status": "error", "http": {"status": 429}}, "ctx": {"a": 1}, "k": "a"}
    template = compile_template(
        "{{ outcome.status == 'error' and outcome.http.status in [429] and ctx[k] == 1 and ctx.zz }}"
    )
    value, trace = template.evaluate_traced(scope)
    assert isinstance(value, Undefined)
    missing = trace.pop("ctx.zz")
    assert isinstance(missing, Undefined)
    assert trace == {"outcome.status": "error", "outcome.http.status": 429, "k": "a", "ctx.a": 1}


def test_a_trace_has_only_what_was_reached() -> None:
    _, trace = compile_template("{{ a and b }}").evaluate_traced({"a": False, "b": True})
    assert trace == {"a": False}
    text, trace = compile_template("{% for i in rows %}{{ i }}{{ x }}{% endfor %}").evaluate_traced(
        {"rows": [1], "x": 2}
    )
    assert (text, trace) == ("12", {"rows": [1], "x": 2})


@pytest.mark.parametrize(
    ("source", "truth"),
    [
        ("{{ true }}", True),
        ("{{ 'false' }}", True),
        ("{{ 0 }}", False),
        ("{{ nope }}", False),
        ("{{ not nope }}", True),
        ("{{ nope == 1 }}", False),
        ("{{ nope != 1 }}", True),
        ("{{ nope < 1 or nope > 1 or nope <= 1 or nope >= 1 or nope in [1] }}", False),
        ("{{ nope not in [1] }}", True),
        ("{{ nope.a.b == nope.c }}", False),
        ("{{ [] }}", False),
        ("{% if a %}true{% else %}false{% endif %}", False),
        ("{% if not a %}true{% else %}false{% endif %}", True),
        ("{% if a %}1{% endif %}", False),
        (" {% if true %} True {% endif %} ", True),
        ("{% if true %}no{% endif %}", False),
        ("{% if true %}None{% endif %}", False),
        ("true", True),
        ("false", False),
    ],
)
def test_conditions(source: str, truth: bool) -> None:
    assert compile_condition(source).test({}) is truth


@pytest.mark.parametrize("source", ["{{ a }} and {{ b }}", "ctx.ok == true", "{% if true %}maybe{% endif %}"])
def test_a_text_that_is_neither_true_nor_false_is_an_error(source: str) -> None:
    with pytest.raises(EvaluationError, match="neither true nor false") as caught:
        compile_condition(source).test({"a": True, "b": False})
    assert "{{ … }}" in (caught.value.fix or "")


def test_errors_know_their_place() -> None:
    def place(source: str) -> int | None:
        with pytest.raises(TemplateError) as caught:
            compile_template(source).evaluate({"a": "x", "n": 1})
        return caught.value.offset

    assert place("{{ n + nope }}") == 3
    assert place("{{ n | fromjson }}") == len("{{ n | ")
    assert place("x {{ a.foo }} {{ range('x') }}") == len("x {{ a.foo }} {{ ")
    assert place("{{ 1 }}{{ n / 0 }}") == len("{{ 1 }}{{ ")
    assert place("{{ a.index('z') }}") == len("{{ a.")
    assert place("{{ n < a }}") is not None


def test_deep_data_is_an_error_and_no_crash() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for source in (
        "x{{ deep }}",
        "{{ deep | tojson }}",
        "{{ deep + [1] }}",
        "{{ deep == [deep] }}",
        "{{ [deep] | unique }}",
    ):
        with pytest.raises(TemplateError):
            compile_template(source).evaluate({"deep": deep})
    assert compile_template("{{ deep }}").evaluate({"deep": deep}) is deep


def test_a_scope_may_be_any_mapping() -> None:
    class Layers(dict[str, Any]):
        def __missing__(self, key: str) -> Any:
            if key == "late":
                return {"x": 1}
            raise KeyError(key)

    assert compile_template("{{ late.x }}").evaluate(Layers()) == 1
    assert isinstance(compile_template("{{ never.x }}").evaluate(Layers()), Undefined)


def test_the_repr_shows_the_source() -> None:
    assert repr(Template("{{ a }}")) == "Template('{{ a }}')"


def test_templates_are_kept_up_to_a_bound_of_memory() -> None:
    cache = _Cache(1_000_000)
    first = cache.get("{{ a }}")
    assert cache.get("{{ a }}") is first
    for number in range(200):
        assert cache.get("{{ a }}") is first  # in use
        cache.get("{{ [" + "b," * 20 + f"{number}] }}}}")
    templates = [item for item in gc.get_objects() if isinstance(item, Template)]
    # A template that did not compile has no source; the error of another test may still refer to it.
    kept = [item for item in templates if getattr(item, "source", "").startswith("{{ [b,b,")]
    assert 1 < len(kept) < 30


@pytest.mark.parametrize("source", ["{{ [" + "a," * 4_000 + "] }}", "{{ a }}" * 1_500, "{% if a %}x{% endif %}" * 400])
def test_the_memory_of_a_template_is_known(source: str) -> None:
    tracemalloc.start()
    template = Template(source)
    template.evaluate_traced({"a": 1})
    template.evaluate({"a": 1})
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / 2 < template.memory < taken * 4
