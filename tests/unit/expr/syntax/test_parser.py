"""The tree of a template carries exact character offsets."""

from __future__ import annotations

import pytest
from jinja2 import nodes

from noetl.expr import has_template
from noetl.expr.syntax.parser import parse


@pytest.mark.parametrize(
    ("source", "expected"),
    [("a {{ b }}", True), ("{% if a %}{% endif %}", True), ("{# c #}", True), ("a } b", False), ("{ { a } }", False)],
)
def test_marks(source: str, expected: bool) -> None:
    assert has_template(source) is expected


def offset_of(source: str, kind: type[nodes.Node], position: int = 0) -> int:
    found = list(parse(source).find_all(kind))
    return found[position].lineno


def test_names_filters_and_functions_carry_their_own_offset() -> None:
    source = "x {{ abc }} {{ f(a) | upper | lower }}"
    assert source[offset_of(source, nodes.Name) :].startswith("abc")
    assert {source[node.lineno :][:5] for node in parse(source).find_all(nodes.Filter)} == {"upper", "lower"}


def test_lookups_carry_the_offset_of_their_key() -> None:
    source = "{{ a . bcd [ 'key' ] [ 0 ] }}"
    places = sorted(node.lineno for node in parse(source).find_all((nodes.Getattr, nodes.Getitem)))
    assert [source[place:].split(maxsplit=1)[0] for place in places] == ["bcd", "'key'", "0"]


@pytest.mark.parametrize("source", ["{{ a is  defined }}", "{{ a is  not   defined }}", "{{ not a is defined }}"])
def test_tests_carry_the_offset_of_their_name(source: str) -> None:
    assert offset_of(source, nodes.Test) == source.index("defined")


def test_statements_carry_the_offset_of_their_keyword() -> None:
    source = "text {%  for a in b %}{% if c %}{% endif %}{% endfor %}"
    assert offset_of(source, nodes.For) == source.index("for")
    assert offset_of(source, nodes.If) == source.index("if")


@pytest.mark.parametrize(
    "source",
    [
        "a\n\nb {{ name }}", "{# comment #}{{ name }}", "{% raw %}{{ x }}{% endraw %}{{ name }}",
        "   {{- name -}}   ", "a   {%- if x -%}   {{ name }}{% endif %}", "{{ 'name' ~ name }}", "é€😀{{ name }}",
        "a\r\nb\r\n{{ name }}",
    ],
)  # fmt: skip
def test_offsets_count_characters_of_the_source(source: str) -> None:
    assert offset_of(source, nodes.Name, -1) in {
        index for index in range(len(source)) if source.startswith("name", index)
    }
