"""Turns a tool kind's input model into the description that the language checks against.

A kind is one module with two names: `Input`, a `msgspec.Struct` whose every field carries a description, and `KIND`, made
here by `describe`. Types are those of the *rendered* value: a template may stand wherever a value may. Nothing here runs a
tool. Tested in tests/tools/test_contract.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from inspect import cleandoc
from typing import Annotated, Any, cast

import msgspec
from msgspec import inspect as shape

from noetl.dsl.kinds import Kind, KindExample, Need
from noetl.dsl.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Rendered, Text, Type

Sql = Annotated[str, msgspec.Meta(extra={"code": "sql"})]
Shell = Annotated[str, msgspec.Meta(extra={"code": "shell"})]
Python = Annotated[str, msgspec.Meta(extra={"code": "python"})]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]

_PLAIN = re.compile(r"[A-Za-z_/.][\w/.@-]*(?: [\w/.@-]+)*")
_WORDS_WITH_A_MEANING = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


class ToolInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The inputs of a tool kind; a field that the model does not have is refused."""


def about(
    description: str,
    *examples: Any,
    aliases: tuple[str, ...] = (),
    rendered: Rendered = "worker",
) -> msgspec.Meta:
    """Describe one field: what it is for, examples, other spellings, and whether a template in it is rendered."""
    return msgspec.Meta(
        description=description,
        examples=list(examples) or None,
        extra={"aliases": aliases, "rendered": rendered},
    )


def describe(
    model: type[msgspec.Struct],
    *,
    name: str,
    summary: str,
    description: str,
    examples: tuple[KindExample, ...],
    result: Mapping[str, str] | None,
    helper: tuple[str, Mapping[str, str]] | None = None,
    one_of: tuple[tuple[str, ...], ...] = (),
    at_most_one: tuple[tuple[str, ...], ...] = (),
    needs: tuple[Need, ...] = (),
    extra: str = "",
    suspends: bool = False,
) -> Kind:
    """Make the description of a kind from its input model and from what the model cannot say."""
    inner: list[Level] = []
    own = _level(cast(shape.StructType, shape.type_info(model)), f"tools.{name}", inner)
    return Kind(
        name=name,
        summary=summary,
        description=cleandoc(description),
        input=Level(own.name, summary, own.fields, open=own.open),
        levels=tuple(inner),
        one_of=one_of,
        at_most_one=at_most_one,
        needs=needs,
        result=result,
        helper=helper,
        extra=extra,
        examples=tuple(KindExample(example.title, cleandoc(example.yaml) + "\n") for example in examples),
        suspends=suspends,
    )


def decode(model: type[msgspec.Struct], kind: Kind, data: Mapping[str, Any]) -> msgspec.Struct:
    """Read rendered inputs into the kind's model; aliases become names. Raises `msgspec.ValidationError`."""
    levels = {level.name: level for level in kind.levels}
    return msgspec.convert(_canonical(data, kind.input, levels), model)


def _canonical(data: Mapping[str, Any], level: Level, levels: Mapping[str, Level]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for key, value in data.items():
        known = level.field(key)
        named[known.name if known else key] = _canonical_value(value, known.type if known else Type(), levels)
    return named


def _canonical_value(value: Any, type_: Type, levels: Mapping[str, Level]) -> Any:
    options = type_.options if isinstance(type_, OneOf) else (type_,)
    for option in options:
        if isinstance(value, Mapping) and isinstance(option, LevelOf):
            return _canonical(value, levels[option.level], levels)
        if isinstance(value, Mapping) and isinstance(option, MapOf):
            return {key: _canonical_value(item, option.value, levels) for key, item in value.items()}
        if isinstance(value, list) and isinstance(option, ListOf):
            return [_canonical_value(item, option.item, levels) for item in value]
    return value


def _level(struct: shape.StructType, name: str, inner: list[Level]) -> Level:
    """Describe a Struct as a level; the maps inside it are added to `inner`, the outermost first."""
    fields = tuple(_field(known, f"{name}.{known.encode_name}", inner) for known in struct.fields)
    return Level(name, _summary(struct.cls), fields, open=not struct.forbid_unknown_fields)


def _field(known: shape.Field, path: str, inner: list[Level]) -> Field:
    schema: Mapping[str, Any] = {}
    extra: Mapping[str, Any] = {}
    if isinstance(known.type, shape.Metadata):
        schema, extra = known.type.extra_json_schema or {}, known.type.extra or {}
    examples = schema.get("examples") or ()
    return Field(
        name=known.encode_name,
        type=_type(known.type, path, inner),
        summary=schema.get("description", ""),
        required=known.required,
        default="" if known.default is msgspec.NODEFAULT or known.default is None else as_yaml(known.default),
        example=as_yaml(examples[0]) if examples else "",
        aliases=tuple(extra.get("aliases", ())),
        rendered=extra.get("rendered", "worker"),
    )


def _type(info: shape.Type, path: str, inner: list[Level], code: str = "") -> Type:
    """Give the language's type for a type of the model; a kind of value that YAML cannot hold is refused."""
    match info:
        case shape.Metadata():
            return _type(info.type, path, inner, (info.extra or {}).get("code", code))
        case shape.StrType():
            return Text(code)
        case shape.BoolType():
            return Flag()
        case shape.IntType() | shape.FloatType() if info.gt is None and info.lt is None:
            return Number(integer=isinstance(info, shape.IntType), least=info.ge, most=info.le)
        case shape.LiteralType() if all(isinstance(word, str) for word in info.values):
            return Choice(cast(tuple[str, ...], info.values))
        case shape.ListType():
            return ListOf(_type(info.item_type, path, inner, code), info.min_length or 0)
        case shape.DictType():
            return MapOf(_type(info.value_type, path, inner, code))
        case shape.StructType():
            place = len(inner)
            inner.insert(place, _level(info, path, inner))
            return LevelOf(path)
        case shape.UnionType():
            options = tuple(_type(one, path, inner, code) for one in info.types if not isinstance(one, shape.NoneType))
            return options[0] if len(options) == 1 else OneOf(_in_order(options))
        case shape.AnyType():
            return Type()
    raise TypeError(
        f"{path}: an input of type {info!r} has no counterpart in the language; use text, numbers, true or "
        "false, words, lists, maps or a nested Struct."
    )


def _in_order(options: tuple[Type, ...]) -> tuple[Type, ...]:
    """Put narrow alternatives before wide ones: the first that fits decides, and text fits nearly everything."""
    return tuple(sorted(options, key=lambda option: isinstance(option, Text)))


def _summary(model: type) -> str:
    return cleandoc(model.__doc__ or "").partition("\n")[0]


def as_yaml(value: Any) -> str:
    """Write a value the way it may stand behind a key in YAML: plain where that is unambiguous, else as JSON."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS_WITH_A_MEANING:
        return value
    return json.dumps(value, ensure_ascii=False)
