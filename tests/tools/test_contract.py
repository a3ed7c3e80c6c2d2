"""Input models: their description for the language, and decoding."""

from __future__ import annotations

from datetime import datetime
from importlib import import_module
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.dsl.grammar.kinds import Kind
from noetl.dsl.grammar.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type
from noetl.dsl.reading.nodes import plain
from noetl.dsl.reading.parse import parse
from noetl.tools import MODULES, kinds
from noetl.tools.contract import Count, Python, Seconds, Shell, Sql, ToolInput, about, as_yaml, decode, describe


class Inner(ToolInput, frozen=True, kw_only=True):
    """A map inside.

    More text that the summary leaves out.
    """

    module: Annotated[str, about("The module.", aliases=("mod",))] = msgspec.field(name="from")
    size: Annotated[Count, about("How many.")] = 3


class Sample(ToolInput, frozen=True, kw_only=True):
    """Every type that a model may use."""

    url: Annotated[str, about("Where to.", "{{ workload.url }}", aliases=("endpoint", "address"))]
    sql: Annotated[Sql | None, about("SQL.", "SELECT 1", rendered="")] = None
    many: Annotated[Sql | list[Sql] | None, about("SQL, once or often.")] = None
    line: Annotated[Shell | list[str] | None, about("A command.")] = None
    code: Annotated[Python | None, about("Code.")] = None
    wait: Annotated[Seconds | None, about("Seconds.", 1.5)] = None
    share: Annotated[float, about("A share."), msgspec.Meta(ge=0, le=1)] = 0.5
    word: Annotated[Literal["get", "put"], about("What to do.", "put")] = "get"
    check: Annotated[bool, about("Whether.")] = True
    plain: Annotated[str | int | float | bool | None, about("A plain value.")] = None
    inner: Annotated[Inner | str | None, about("A map or a name.")] = None
    inners: Annotated[dict[str, Inner] | None, about("Maps by name.")] = None
    some: Annotated[list[Inner] | None, msgspec.Meta(description="Maps.")] = None
    holes: Annotated[list[int | None] | None, about("Numbers with holes.")] = None
    free: Annotated[Any, about("Anything.")] = None


KIND = describe(
    Sample,
    name="sample",
    summary="Shows every type.",
    description="""
    First line.
      Indented line.
    """,
    result=None,
    examples="""
    # One
    - one:
        kind: sample
    """,
)


def field(name: str, level: Level = KIND.input) -> Field:
    found = level.field(name)
    assert found is not None
    return found


def inner_level() -> Level:
    type_ = field("inner").type
    assert isinstance(type_, OneOf)
    assert isinstance(type_.options[0], LevelOf)
    assert type_.options[0].own is not None
    return type_.options[0].own


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("url", Text()),
        ("sql", Text("sql")),
        ("many", OneOf((ListOf(Text("sql")), Text("sql")))),
        ("line", OneOf((ListOf(Text()), Text("shell")))),
        ("code", Text("python")),
        ("wait", Number(least=0)),
        ("share", Number(least=0, most=1)),
        ("word", Choice(("get", "put"))),
        ("check", Flag()),
        ("holes", ListOf(Type())),
        ("free", Type()),
    ],
)
def test_each_type_of_a_model_has_its_type_in_the_language(name: str, expected: Type) -> None:
    assert field(name).type == expected


def test_text_comes_last_and_whole_numbers_do_not_hide_fractions() -> None:
    type_ = field("plain").type
    assert isinstance(type_, OneOf)
    assert set(type_.options) == {Number(), Flag(), Text()}
    assert type_.options[-1] == Text()


def test_a_map_inside_has_a_level_of_its_own_named_by_its_place() -> None:
    level = inner_level()
    assert (level.name, level.summary, level.open) == ("tools.sample.inner", "A map inside.", False)
    assert {one.name: (one.aliases, one.required) for one in level.fields} == {
        "from": (("mod",), True),
        "size": ((), False),
    }
    inners, some = field("inners").type, field("some").type
    assert isinstance(inners, MapOf)
    assert isinstance(inners.value, LevelOf)
    assert inners.value.level == "tools.sample.inners"
    assert isinstance(some, ListOf)
    assert isinstance(some.item, LevelOf)


def test_a_field_tells_what_its_model_says() -> None:
    assert field("url") == Field(
        "url",
        Text(),
        "Where to.",
        required=True,
        example='"{{ workload.url }}"',
        aliases=("endpoint", "address"),
        rendered="worker",
    )
    assert (field("word").default, field("word").example) == ("get", "put")
    assert (field("check").default, field("wait").default) == ("true", "")
    assert (field("sql").rendered, field("some").rendered) == ("", "worker")
    assert field("some").summary == "Maps."


def test_a_kind_keeps_its_words_without_the_indentation_of_the_file() -> None:
    assert KIND.description == "First line.\n  Indented line."
    assert KIND.examples[0].yaml == "- one:\n    kind: sample\n"
    assert (KIND.input.name, KIND.input.summary) == ("tools.sample", "Shows every type.")


def test_a_model_that_takes_any_field_gives_an_open_level() -> None:
    class Open(msgspec.Struct):
        """Anything goes."""

    assert minimal(Open).input.open
    assert not KIND.input.open


def minimal(model: type[msgspec.Struct]) -> Kind:
    return describe(model, name="x", summary="S.", description="", examples="", result=None)


class Moment(msgspec.Struct):
    """A type that YAML has no word for."""

    at: datetime


class Odd(msgspec.Struct):
    """Words that are numbers."""

    at: Literal[1, 2]


class Between(msgspec.Struct):
    """A bound that the language cannot say."""

    at: Annotated[int, msgspec.Meta(gt=0)]


@pytest.mark.parametrize("model", [Moment, Odd, Between])
def test_a_type_without_counterpart_is_refused_with_its_place(model: type[msgspec.Struct]) -> None:
    with pytest.raises(TypeError, match=r"^tools\.x\.at: "):
        minimal(model)


WORDS = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]))
NUMBERS = st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN_DATA = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN_DATA)
def test_an_example_is_yaml_for_the_same_value(value: Any) -> None:
    assert plain(parse(f"key: {as_yaml(value)}").root) == {"key": value}


def test_decoding_takes_aliases_numbers_as_text_and_text_as_numbers() -> None:
    read = decode(
        Sample,
        KIND.input,
        {
            "endpoint": 8080,
            "wait": "1.5",
            "plain": 5,
            "check": "false",
            "inner": {"mod": True},
            "inners": {"a": {"mod": "m"}},
        },
    )
    assert read == Sample(
        url="8080", wait=1.5, plain=5, check=False, inner=Inner(module="true"), inners={"a": Inner(module="m")}
    )


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({}, "url"),
        ({"url": "x", "wait": -1}, r"\$\.wait"),
        ({"url": "x", "wrod": "get"}, "wrod"),
        ({"url": "x", "word": "got"}, r"\$\.word"),
        ({"url": "x", "some": [{"from": "a", "size": "many"}]}, r"\$\.some\[0\]\.size"),
    ],
)
def test_decoding_names_what_does_not_fit(data: dict[str, Any], place: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=place):
        decode(Sample, KIND.input, data)


def values(type_: Type) -> st.SearchStrategy[Any]:
    """Values that fit a type of the language."""
    match type_:
        case Text():
            return st.text(max_size=8) | st.integers(-(10**9), 10**9) | st.booleans()
        case Flag():
            return st.booleans()
        case Number(integer, least, most):
            low, high = (0 if least is None else int(least)), (10**6 if most is None else int(most))
            return st.integers(low, high) if integer else st.floats(low, high) | st.integers(low, high)
        case Choice(words):
            return st.sampled_from(words)
        case ListOf(item, at_least):
            return st.lists(values(item), min_size=at_least, max_size=3)
        case MapOf(value):
            return st.dictionaries(st.text(max_size=4), values(value), max_size=3)
        case LevelOf(own=Level() as level):
            return maps(level)
        case OneOf(options):
            return st.one_of([values(option) for option in options])
    return st.none() | st.text(max_size=4) | st.lists(st.integers(), max_size=2)


def maps(level: Level) -> st.SearchStrategy[dict[str, Any]]:
    """Maps that fit a level, under its names or its aliases."""
    must = {one.name: values(one.type) for one in level.fields if one.required}
    may = {(one.aliases or (one.name,))[0]: values(one.type) | st.none() for one in level.fields if not one.required}
    return st.fixed_dictionaries(must, optional=may)


@pytest.mark.parametrize("name", list(MODULES))
@given(data=st.data())
@settings(max_examples=40)
def test_what_the_description_accepts_the_model_reads(name: str, data: st.DataObject) -> None:
    level = kinds()[name].input
    decode(import_module(MODULES[name]).Input, level, data.draw(maps(level)))
