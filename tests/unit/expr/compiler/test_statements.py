"""Text with `if`, `for` and `set`; see also test_differential.py."""

from __future__ import annotations

import pytest

from noetl.expr import EvaluationError, compile_template
from tests.unit.expr.evaluating import text_of


def test_a_loop_sees_outer_variables_and_keeps_its_own() -> None:
    source = "{% set x = 'o' %}{% for i in [1, 2] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}"
    assert text_of(source) == "o1o2o"


def test_a_variable_set_in_one_branch_falls_back_to_the_data() -> None:
    source = "{% if flag %}{% set x = 'set' %}{% endif %}{{ x }}!"
    assert text_of(source, flag=True, x="data") == "set!"
    assert text_of(source, flag=False, x="data") == "data!"
    assert text_of(source, flag=False) == "!"


def test_a_variable_set_in_a_loop_starts_afresh_in_every_round() -> None:
    source = "{% for i in [1, 2, 3] %}{% if i == 1 %}{% set x = 'set' %}{% endif %}{{ x }},{% endfor %}"
    assert text_of(source, x="data") == "set,data,data,"


def test_loops_in_loops_have_their_own_loop() -> None:
    source = "{% for a in 'xy' %}{{ loop.index }}{% for b in 'pq' %}{{ loop.index0 }}{% endfor %}{{ loop.last }} {% endfor %}"
    assert text_of(source) == "101False 201True "


def test_the_loop_variable_is_a_map() -> None:
    assert text_of("{% for i in [1] %}{{ loop.length }}{{ loop.nope }}{{ loop['first'] }}{% endfor %}") == "1True"


def test_a_loop_goes_over_the_value_of_an_expression() -> None:
    rows = [3, 1, 2]
    assert text_of("{% for i in rows | sort %}{{ i }}{% endfor %}", rows=rows) == "123"
    assert rows == [3, 1, 2]


def test_a_namespace_leaves_only_as_a_copy() -> None:
    source = "{% set ns = namespace(a=1) %}{% set copy = ns %}{% set ns.a = 2 %}{{ copy.a }}{{ ns.a }}"
    assert text_of(source) == "12"


def test_a_namespace_can_start_from_a_map() -> None:
    data = {"a": 1}
    assert text_of("{% set ns = namespace(start) %}{% set ns.a = 2 %}{{ ns.a }}", start=data) == "2"
    assert data == {"a": 1}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% for a, b in [[1, 2, 3]] %}{% endfor %}", "3 items cannot be unpacked into 2 names"),
        ("{% for a, b in [5] %}{% endfor %}", "a number cannot be unpacked into 2 names"),
        ("{% set a, b = 5 %}", "a number cannot be unpacked into 2 names"),
        ("{% for i in 5 %}{% endfor %}", "cannot iterate over a number"),
        ("{% for i in rows recursive %}{{ loop(i) }}{% endfor %}", "is not supported"),
        ("{% set x = 1 %}{% set x.y = 2 %}", "is not a namespace"),
        ("{% set ns = namespace() %}{% set ns = 5 %}{% set ns.x = 1 %}", "is not a namespace"),
        ("{% if false %}{% set ns = namespace() %}{% endif %}{% set ns.x = 1 %}", "not set yet"),
        ("{% if true %}{{ 1 + 'a' }}{% endif %}", "`+` does not support a number and a string"),
    ],
)
def test_what_does_not_fit_is_named(source: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        compile_template(source).evaluate({"rows": [1]})
    assert message in caught.value.message
    assert caught.value.offset is not None


def test_a_block_of_text_can_be_set_through_filters() -> None:
    assert text_of("{% set x | upper | replace('A', n) %}a{{ n }}{% endset %}{{ x }}!", n="b") == "bB!"
    assert text_of("{% set x %}{% for i in [1, 2] %}{{ i }}{% endfor %}{% endset %}[{{ x }}]") == "[12]"


def test_text_around_tags_can_be_stripped() -> None:
    assert text_of("a  {%- if true -%}  b  {%- endif -%}  c") == "abc"
