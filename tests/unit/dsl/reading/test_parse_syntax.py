"""How broken YAML is reported: one problem, at the mistake, in words that help."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given

from noetl.dsl.reading.nodes import MapNode, Source, plain
from noetl.dsl.reading.parse import parse, read
from tests.unit.dsl.reading.yaml_texts import yaml_noise, yaml_texts

# What is wrong, marked by «» in the text, and words that the message must have.
CASES = [
    ("a:\n«\t»b: 1\n", "tab"),
    ("a:\n  b: 1\n«\t»c: 2\n", "tab"),
    ("a: |\n«\t»x\n", "tab"),
    ("a: «'»foo\nb: 1\n", "never closed"),
    ('a: «"»foo\nb: 1\n', "never closed"),
    ("a: «'»\n---\nb'", "never closed"),
    ('a: "x«\\d»"\n', "write '\\\\d'"),
    ('a: «"x\\ud800"»', "escape"),
    ("«a:»b\nc: d\n", "space is missing after 'a:'"),
    ("a: b\n«c:»d\ne: f\n", "space is missing after 'c:'"),
    ("- a\n«-b»\n- c\n", "space is missing after '-'"),
    ("a: b\n«foo»\nc: d\n", "colon is missing: 'foo'"),
    ("«a»\nb: 1\n", "colon is missing: 'a'"),
    ("«:» a\n", "key is missing"),
    ("a: {«:» z}\n", "key is missing"),
    ("a: «{{ x }}»\n", 'quotes: "{{ x }}"'),
    ("a: «{{ x }}/{{ y }}»\n", 'quotes: "{{ x }}/{{ y }}"'),
    ("a: «{{ x.y['a'] }}»\n", "quotes: \"{{ x.y['a'] }}\""),
    ('a: «{{ x["a"] }}»\n', "quotes: '{{ x[\"a\"] }}'"),
    ("a: {b: «{{ x }}» }\n", 'quotes: "{{ x }}"'),
    ("a: [«{{ x }}»]\n", 'quotes: "{{ x }}"'),
    ("- b: 1\n- «{{ x }} y» # c\n", 'quotes: "{{ x }} y"'),
    ("a: «{% if x %}y{% endif %}»\n", "begins with {%"),
    ("a: «@x»\n", 'quotes: "@x"'),
    ("a: «`x`» # c\n", 'quotes: "`x`"'),
    ("a: «%x»\n", 'quotes: "%x"'),
    ("cron: «*/5 * * * *»\n", 'quotes: "*/5 * * * *"'),
    ("a: &x 1\nb: «*x y»\n", 'quotes: "*x y"'),
    ("a: «b: c» # d\n", 'quotes: "b: c"'),
    ("a: 1\n  «b: 2»\n", "deeper than line 1"),
    ("a:\n  b: 1\n «c: 2»\n", "indented by 1"),
    ("a:\n  - b: 1\n   «c: 2»\n", "indented by 3"),
    ("  a: 1\n«b: 2»\n", "indented by 0"),
    ("a: 1\n«- b»\n", "a key is expected, not a list item"),
    ("- a\n«b: 1»\n", "list item is expected"),
    ("a: «- b»\n", "on a new line"),
    ("a: «[»1, 2\nb: 3\n", "'[' that opens here is not closed"),
    ("a: «{»x: 1\nb: 3\n", "'{' that opens here is not closed"),
    ('{"a": 1,\n "b" «2»}', "',' or the closing '}'"),
    ("a: [1, 2«}»\n", "closing ']'"),
    ("a: [1]«]»\n", "no matching opening bracket"),
    ("a: «]»\n", "cannot begin with ']'"),
    ("{'a': 1,«,» b: 2}", "value is missing"),
    ("a: 'it'«s'»\n", "double the quote"),
    ('a: "{{ x }}" «+ 1»\n', "one pair of quotes"),
    ('a: «"»b\nc: d\ne: "f"\n', "next quote is on line 3"),
    ("a:\n  - «'»b\n  - 'c'\n", "next quote is on line 3"),
    ("a: | «x»\n  y\n", "next line"),
    ("«%FOO»\n---\na: 1", "directive"),
    ("a: 1\n«<<<<<<< HEAD»\nb: 2\n=======\nb: 3\n>>>>>>> x\n", "merge conflict"),
    ("«<<<<<<< HEAD»\na: 1\n=======\na: 2\n>>>>>>> x\n", "merge conflict"),
]


@pytest.mark.parametrize(("marked", "words"), CASES)
def test_a_mistake_is_named_where_it_is(marked: str, words: str) -> None:
    start, text = marked.index("«"), marked.replace("«", "").replace("»", "")
    [problem] = parse(text).problems
    assert words in problem.message
    assert problem.kind == ("tab" if words == "tab" else "syntax")
    assert (problem.start, text[problem.start : problem.end]) == (start, marked[start + 1 : marked.index("»")])


def test_what_stands_before_the_mistake_is_read() -> None:
    document = parse("a: 1\nb:\n  - c: 2\n  - d: [3, {e: 4\nf: @\n")
    assert len(document.problems) == 1
    assert isinstance(document.root, MapNode)
    assert plain(document.root.get("a")) == 1
    assert plain(document.root.get("b"))[0] == {"c": 2}


def test_an_unquoted_template_is_read_as_the_text_that_was_meant() -> None:
    document = parse("a: {{ x }}\nb: 1\n")
    assert plain(document.root) == {"a": "{{ x }}", "b": 1}


def test_earlier_problems_are_kept_beside_the_break() -> None:
    assert [found.kind for found in parse("a: 1\na: 2\nb: [\n").problems] == ["duplicate-key", "syntax"]


@given(yaml_noise)
def test_noise_is_answered_with_places_inside_the_text(text: str) -> None:
    document = parse(text)
    for problem in document.problems:
        assert 0 <= problem.start <= problem.end <= len(document.source.text)
        assert problem.message.endswith(".")
        assert "\n" not in problem.message
    if document.root is None:
        assert document.problems


@given(yaml_noise | yaml_texts())
def test_the_parser_in_python_is_answered_too(text: str) -> None:
    for problem in read(Source("f", text), yaml.Loader).problems:
        assert 0 <= problem.start <= problem.end <= len(text)
        assert problem.message.endswith(".")
