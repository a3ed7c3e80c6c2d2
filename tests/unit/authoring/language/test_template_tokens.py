"""Code inside templates: its tokens, and what is being written at the cursor."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.authoring.language.template_tokens import Token, Writing, path_before, tokens, writing


def words(source: str) -> list[str]:
    return [token.text for token in tokens(source)]


def test_only_code_has_tokens() -> None:
    source = "a {{ b.c }} d {# {{ e }} #} {% raw %}{{ f }}{% endraw %} {%- if g -%}h"
    assert words(source) == ["{{", "b", ".", "c", "}}", "{%-", "if", "g", "-%}"]


def test_texts_are_one_token_and_braces_inside_of_code_do_not_end_it() -> None:
    assert words("{{ {'}}': {1: 2}} ~ \"a'b\" }}x{{ y") == [
        "{{", "{", "'}}'", ":", "{", "1", ":", "2", "}", "}", "~", "\"a'b\"", "}}", "{{", "y",
    ]  # fmt: skip


def test_an_open_text_runs_to_the_end() -> None:
    assert tokens("{{ done('st")[-1] == Token("open", "'st", 8)


@given(st.text(st.sampled_from(list("ab.|{}%#'\"()[] \n\\-")), max_size=50))
def test_tokens_stand_where_they_say(source: str) -> None:
    found = tokens(source)
    assert all(source.startswith(token.text, token.start) for token in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("plain", None),
        ("{{ a }} ", None),
        ("{# ctx.", None),
        ("{{ ", Writing("name")),
        ("{{ wor", Writing("name", "wor")),
        ("{{ a and b", Writing("name", "b")),
        ("{{ ctx.", Writing("key", "", ("ctx",))),
        ("{{ ctx.to", Writing("key", "to", ("ctx",))),
        ("{{ a['b'][0].c.d", Writing("key", "d", ("a", "b", "0", "c"))),
        ("{{ (a | first).b", Writing("nothing", "b")),
        ("{{ a['", Writing("key", "", ("a",))),
        ("{{ a | to", Writing("filter", "to")),
        ("{{ a is de", Writing("test", "de")),
        ("{{ a is not ", Writing("test")),
        ("{{ 12", Writing("nothing", "12")),
        ("{{ done('st", Writing("text", "st", function="done")),
        ("{{ event.name == 'st", Writing("text", "st", ("event", "name"))),
        ("{{ x and outcome.error.kind not in ['a', '", Writing("text", "", ("outcome", "error", "kind"))),
        ("{{ 'free", Writing("text", "free")),
        ("{% ", Writing("statement")),
        ("{% fo", Writing("statement", "fo")),
        ("{% if ctx.", Writing("key", "", ("ctx",))),
    ],
)
def test_what_is_being_written(source: str, expected: Writing | None) -> None:
    assert writing(source, len(source)) == expected


def test_what_stands_behind_the_cursor_does_not_matter() -> None:
    assert writing("{{ ctx.total | int }}", len("{{ ctx.to")) == Writing("key", "to", ("ctx",))


def test_words_of_the_language_are_no_paths() -> None:
    code = tokens("{{ not }}")
    assert path_before(code, 1) == ()
