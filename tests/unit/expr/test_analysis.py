"""Reads that reach the result unchanged, and constants a path is compared with."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.expr import compile_template, dotted

HARMLESS = frozenset({"int", "quote"})


def reached(source: str) -> list[str]:
    return [dotted(read.path) for read in compile_template(source).spliced(HARMLESS)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("ls", []),
        ("{{ a.b }}", ["a.b"]),
        ("ls {{ a.b }} {{ c }}", ["a.b", "c"]),
        ("{{ a | quote }}", []),
        ("{{ a | default('x') | quote }}", []),
        ("{{ a | quote | upper }}", []),
        ("{{ a | upper }}", ["a"]),
        ("{{ 'x' | replace('x', a) }}", ["a"]),
        ("{{ a | int + 1 }}", []),
        ("{{ a + b | int }}", ["a"]),
        ("{{ a - b }}", ["a"]),
        ("{{ 'p' ~ a }}", ["a"]),
        ("{{ '--full' if a else '' }}", []),
        ("{{ b if a else c }}", ["b", "c"]),
        ("{{ a == 'x' }}", []),
        ("{{ a is defined }}", []),
        ("{{ not a }}", []),
        ("{{ a or b }}", ["a", "b"]),
        ("{{ a[b] }}", ["a"]),
        ("{{ a[1:b] }}", ["a"]),
        ("{{ [a, 1] }}", ["a"]),
        ("{{ {'k': a} }}", ["a"]),
        ("{{ a.split(',')[0] }}", ["a"]),
        ("{{ a.get('k', b) }}", ["a.k", "b"]),
        ("{{ range(a) }}", []),
        ("{{ now() }}", []),
        ("{% if a %}--verbose{% endif %}", []),
        ("{% if a %}{{ b }}{% else %}{{ c }}{% endif %}", ["b", "c"]),
        ("{% for x in a %}{{ x }} {% endfor %}", ["a"]),
        ("{% for x in a | quote %}{{ x }} {% endfor %}", []),
        ("{% set x = a %}{{ x }}", ["a"]),
        ("{% set x %}{{ a }}{% endset %}{{ x }}", ["a"]),
        ("{{ -a }}", []),
    ],
)
def test_reads_that_reach_the_result(source: str, expected: list[str]) -> None:
    assert reached(source) == expected


def test_a_read_keeps_its_place() -> None:
    (read,) = compile_template("ls {{ quoted | quote }} {{ folder }}").spliced(HARMLESS)
    assert read.offset == len("ls {{ quoted | quote }} {{ ")


def test_what_fails_reaches_nothing() -> None:
    assert reached("{{ a | no_such_filter }}") == []


@pytest.mark.parametrize(
    ("source", "path", "values"),
    [
        ("{{ event.name == 'a' }}", "event.name", {"a"}),
        ("{{ 'a' != event.name }}", "event.name", {"a"}),
        ("{{ event.name in ['a', 'b'] or event.name not in ('c',) }}", "event.name", {"a", "b", "c"}),
        ("{{ event.name == 'a' and (x or not event.name == 'b') }}", "event.name", {"a", "b"}),
        ("{{ event.name is eq('a') or event.name is in ['b'] }}", "event.name", {"a", "b"}),
        ("{{ event.name == x or event.name > 5 }}", "event.name", set()),
        ("{{ event.step == 'a' }}", "event.name", set()),
        ("{{ event['name'] == 'a' }}", "event.name", {"a"}),
        (
            "{% if event.name == 'a' %}{% for i in b if event.name == 'c' %}x{% endfor %}{% endif %}",
            "event.name",
            {"a", "c"},
        ),
        ("{{ (event.name == 'a') | ternary(event.name == 'b', 1) }}", "event.name", {"a", "b"}),
        ("{{ a[0] == 1 }}", "a[0]", {1}),
        ("plain", "event.name", set()),
    ],
)
def test_values_compared(source: str, path: str, values: set[Any]) -> None:
    assert compile_template(source).values_compared(path) == frozenset(values)
