"""Conditions as text: their event, their parts, and how they are combined."""

from __future__ import annotations

import pytest

from noetl.dsl.dialects.lowering.conditions import condition_of, conjunction, expression_of, negation
from noetl.dsl.dialects.lowering.draft import NoEquivalentError
from noetl.dsl.reading.nodes import MapNode
from noetl.dsl.reading.parse import parse
from noetl.expr import compile_template


@pytest.mark.parametrize(
    ("expression", "moment", "rest"),
    [
        ("event.name == 'step.exit'", "ok", ""),
        ("event.name == 'call.done' and response is defined", "ok", ""),
        ("(event.name == 'step.exit') and (response.n > 3)", "ok", "(response.n > 3)"),
        ("'action_error' == event.name", "error", ""),
        ("error is defined and error.kind == 'x'", "error", "error.kind == 'x'"),
        ("not error", "ok", ""),
        ("event.name == 'loop_completed'", "loop", ""),
        ("event.name in ['step.done', 'step.exit']", "ok", ""),
        ("event.name in ('step.done', 'step.failed') and a", "any", "a"),
        ("event.name == 'step.enter'", "start", ""),
        ("event.name == 'step.enter' and a", "start", "a"),
        ("event.name in ['step.enter', 'step.exit']", "other", ""),
        ("event.name == 'loop.iteration.finished'", "item", ""),
        ("event.name in ['step.exit', 'loop.done']", "ok", ""),
        ("event.name == 'step.exit' or event.name == 'call.done'", "ok", ""),
        ("(event.name == 'step.exit' or 'action_error' == event.name) and a", "any", "a"),
        ("event.name != 'step.failed' and a", "ok", "a"),
        ("event.name == 'step.done' and event.name == 'step.failed'", "never", ""),
        ("event.name == 'step.done' and error", "never", ""),
        ("event.name == 'sink.processed'", "ok", ""),
        ("event.name == 'sink.started'", "other", "event.name == 'sink.started'"),
        ("event.name == 'stepp.exit'", "other", "event.name == 'stepp.exit'"),
        ("a or event.name == 'step.exit'", "any", "a or event.name == 'step.exit'"),
        ("'a and b' == c and d", "any", "'a and b' == c and d"),
        ("x[a and b] and c", "any", "x[a and b] and c"),
        ("a if b else c", "any", "a if b else c"),
    ],
)
def test_a_condition_is_about_an_event_and_the_rest(expression: str, moment: str, rest: str) -> None:
    found = condition_of(expression)
    assert (found.moment, found.rest) == (moment, rest)


@pytest.mark.parametrize(
    ("written", "expression", "value"),
    [
        ('"{{ a }}"', "a", 1),
        ('"x {{ a }} y"', "'x ' ~ (a) ~ ' y'", "x 1 y"),
        ('"{{ a }}{{ b }}"', "(a) ~ (b)", "12"),
        ("it's", r"'it\'s'", "it's"),
        ("3", "3", 3),
        ("true", "true", True),
        ("null", "none", None),
        ('{ k: "{{ a }}", l: [b, 2] }', "{'k': a, 'l': ['b', 2]}", {"k": 1, "l": ["b", 2]}),
    ],
)
def test_a_value_becomes_an_expression_of_the_same_value(written: str, expression: str, value: object) -> None:
    root = parse(f"v: {written}").root
    assert isinstance(root, MapNode)
    made = expression_of(root.get("v"))
    assert made == expression
    assert compile_template("{{ " + made + " }}").evaluate({"a": 1, "b": 2}) == value


def test_a_text_with_statements_is_no_expression() -> None:
    root = parse('v: "{% if a %}b{% endif %}"').root
    assert isinstance(root, MapNode)
    with pytest.raises(NoEquivalentError):
        expression_of(root.get("v"))


def test_combined_conditions_keep_their_meaning() -> None:
    assert conjunction("", "a") == "a"
    assert conjunction("a", "b or c") == "a and (b or c)"
    assert negation(("a", "b and c")) == "not (a or (b and c))"
