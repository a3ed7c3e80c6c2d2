"""The lexer finds the same lexemes as Jinja2, each with its offset."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.expr import compile_template
from noetl.expr.syntax.lexer import Lexeme, LexError, jinja_tokens, scan
from tests.unit.expr import corpus
from tests.unit.expr.strategies import garbage, templates

LEXER = jinja2.Environment().lexer
FAILED = "failed"


def by_jinja2(source: str) -> Any:
    try:
        return [(token.type, token.value) for token in LEXER.tokenize(source)]
    except jinja2.TemplateSyntaxError:
        return FAILED


def by_noetl(source: str) -> Any:
    lexemes: list[Lexeme] = []
    try:
        scan(source, lexemes)
        return [(token.type, token.value) for token in jinja_tokens(lexemes)]
    except LexError:
        return FAILED


@pytest.mark.parametrize(
    "source",
    [
        *corpus.same(),
        *corpus.different(),
        "a {{- b -}} c",
        "a {{+ b }} c",
        "a {%- if b -%} c {%+ endif +%} d",
        "a {#- b -#} c {#+ d +#} e",
        "a {%- raw -%} {{ x }} {%- endraw -%} b",
        "a {% raw %} {{ x }} {% endraw %} b\n",
        "{{ {'a': {'b': 1}}}}",
        "{{ 1.5e-3 + 1_0.5 + .5 }}",
        "{{ a.1.2 }}",
        "{{ 'a\\'b\\\\c\\n' }}",
        "{{ '\\x41\\u0041\\U00000041\\101\\N{BULLET}' }}",
        "{{ 'line\nbreak' }}\r\n{{ 'x\r\ny' }}\r\n",
        "\n",
        "a\r",
        "{{ a·b }}",
    ],
)
def test_pieces_are_those_of_jinja2(source: str) -> None:
    assert by_noetl(source) == by_jinja2(source)


@settings(max_examples=300, deadline=None)
@given(st.one_of(garbage, templates))
def test_pieces_are_those_of_jinja2_for_any_text(source: str) -> None:
    # A backslash is where the two differ on purpose: see below.
    source = source.replace("\\", "/")
    assert by_noetl(source) == by_jinja2(source)


@settings(max_examples=200, deadline=None)
@given(st.one_of(garbage, templates))
def test_each_piece_stands_where_it_says(source: str) -> None:
    lexemes: list[Lexeme] = []
    with suppress(LexError):
        scan(source, lexemes)
    end = 0
    for lexeme in lexemes:
        assert source.startswith(lexeme.text, lexeme.offset)
        assert lexeme.offset >= end
        end = lexeme.offset + len(lexeme.text)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"'\d+\s\w'", r"\d+\s\w"),
        (r"'\.'", r"\."),
        (r"'\\d'", r"\d"),
        (r"'\n\t\\'", "\n\t\\"),
        (r"'\1'", "\x01"),
        (r"'\é'", r"\é"),
    ],
)
def test_a_backslash_that_starts_no_escape_is_kept(written: str, value: str) -> None:
    assert compile_template("{{ " + written + " }}").evaluate({}) == value
