"""A missing value is chainable, false and empty, and can say what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.expr import Undefined, UndefinedError, compile_template

SCOPE: dict[str, Any] = {"ctx": {"user": {"name": "Ada"}, "rows": [1], "nothing": None}, "outcome": {"status": "ok"}}


def undefined(source: str) -> Undefined:
    value = compile_template(source).evaluate(SCOPE)
    assert isinstance(value, Undefined)
    return value


def test_it_is_false_empty_and_equal_to_nothing() -> None:
    value, other = Undefined(("a",)), Undefined(("a",))
    assert not value
    assert (list(value), len(value), str(value), 1 in value) == ([], 0, "", False)
    assert [value == other, value == value, value == 1] == [False] * 3
    assert [value != other, value != value, value != 1] == [True] * 3
    assert [value < 1, value > 1, value <= 1, value >= 1] == [False] * 4
    assert len({value, other}) == 2


@pytest.mark.parametrize(
    ("source", "path", "description", "candidates"),
    [
        ("{{ outcom.status }}", ("outcom", "status"), "`outcom.status` is undefined", ("outcome",)),
        ("{{ ctx.user.nam }}", ("ctx", "user", "nam"), "`ctx.user` has no key `nam`", ("name",)),
        ("{{ ctx.usr.name.first }}", ("ctx", "usr", "name", "first"), "`ctx` has no key `usr`", ("user",)),
        ("{{ ctx.rows[5].x }}", ("ctx", "rows", 5, "x"), "`ctx.rows` has no item 5", ()),
        ("{{ ctx.rows.first }}", ("ctx", "rows", "first"), "`ctx.rows` has no key `first`", ()),
        ("{{ ctx.nothing.x }}", ("ctx", "nothing", "x"), "`ctx.nothing` is null", ()),
        ("{{ ctx['zz zz'] }}", ("ctx", "zz zz"), "`ctx['zz zz']` is undefined", ()),
        ("{{ ctx.user['na' ~ 'm'] }}", ("ctx", "user", "nam"), "`ctx.user` has no key `nam`", ("name",)),
        ("{{ (ctx.user).nam }}", ("ctx", "user", "nam"), "has no key `nam`", ("name",)),
        ("{{ ctx.user.name.x }}", ("ctx", "user", "name", "x"), "`ctx.user.name` has no key `x`", ()),
    ],
)
def test_it_says_what_is_missing(
    source: str, path: tuple[Any, ...], description: str, candidates: tuple[str, ...]
) -> None:
    value = undefined(source)
    assert value.path == path
    assert description in value.describe()
    assert value.candidates == candidates


@pytest.mark.parametrize(
    "source",
    [
        "{{ ctx.zz + 1 }}", "{{ 1 - ctx.zz }}", "{{ ctx.zz * 2 }}", "{{ 2 / ctx.zz }}", "{{ ctx.zz % 2 }}",
        "{{ 2 ** ctx.zz }}", "{{ -ctx.zz }}", "{{ 'a%s' % ctx.zz }}", "{{ ctx.zz | int }}", "{{ ctx.zz | float }}",
        "{{ ctx.zz | abs }}", "{{ ctx.zz | round }}", "{{ ctx.zz | tojson }}", "{{ [ctx.zz] | tojson }}",
        "{{ ctx.zz | fromjson }}", "{{ ctx.zz | to_datetime }}", "{{ ctx.zz.split(',') }}", "{{ ctx.zz.items() }}",
        "{{ [1, ctx.zz] | sum }}", "{{ [1, ctx.zz] | sort }}", "{{ [1, ctx.zz] | max }}",
        "{{ [[1, ctx.zz]] | sort }}", "{{ ctx.zz is odd }}", "{{ range(ctx.zz) }}", "{{ 'x'.center(ctx.zz) }}",
    ],
)  # fmt: skip
def test_where_a_value_is_needed_the_error_names_the_path(source: str) -> None:
    with pytest.raises(UndefinedError) as caught:
        compile_template(source).evaluate(SCOPE)
    assert caught.value.path == ("ctx", "zz")
    assert "`ctx.zz`" in caught.value.message
    assert caught.value.fix
    assert caught.value.offset is not None


def test_the_fix_names_the_nearest_name() -> None:
    with pytest.raises(UndefinedError) as caught:
        compile_template("{{ ctx.user.nam + 1 }}").evaluate(SCOPE)
    assert caught.value.fix == "did you mean `name`?"
    assert caught.value.candidates == ("name",)


def test_a_choice_without_else_is_undefined() -> None:
    assert undefined("{{ 1 if false }}").path == ("(choice without else)",)


def test_a_choice_without_else_is_nothing_in_text_and_undefined_alone() -> None:
    template = compile_template("{% for x in [1, 2] %}{{ x }}{{ ', ' if not loop.last }}{% endfor %}")
    assert template.evaluate({}, strict=True) == "1, 2"
    assert undefined("{{ 1 if false }}").is_choice
