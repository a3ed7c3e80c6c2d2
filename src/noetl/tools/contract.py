"""Convert a tool kind's input model to the description that the language checks.

A kind is one module with two names: `Input`, a `msgspec.Struct` with a description on every field, and `KIND`, made by
`describe`. Types are those of the *rendered* value: a template is allowed wherever a value is. A kind's module omits
`from __future__ import annotations`: string annotations are evaluated several times, which doubles its load time.
Tested in tests/tools/test_contract.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from inspect import cleandoc
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import inspect as shape
from msgspec.structs import replace

from noetl.dsl.grammar.kinds import Kind, KindExample, Need
from noetl.dsl.grammar.types import (
    Choice,
    Field,
    Flag,
    Level,
    LevelOf,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Rendered,
    Text,
    Type,
)

Sql = Annotated[str, msgspec.Meta(extra={"code": "sql"})]
Shell = Annotated[str, msgspec.Meta(extra={"code": "shell"})]
Python = Annotated[str, msgspec.Meta(extra={"code": "python"})]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]

_PLAIN = re.compile(r"[A-Za-z_/.][\w/.@-]*(?: [\w/.@-]+)*")
_WORDS_WITH_A_MEANING = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})

Model = TypeVar("Model", bound=msgspec.Struct)


class ToolInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Inputs of a tool kind; unknown fields are refused."""


def about(
    description: str, *examples: Any, aliases: tuple[str, ...] = (), rendered: Rendered = "worker"
) -> msgspec.Meta:
    """Describe one field: purpose, examples, aliases, where its template is rendered."""
    return msgspec.Meta(
        description=description, examples=list(examples) or None, extra={"aliases": aliases, "rendered": rendered}
    )


def describe(
    model: type[msgspec.Struct],
    *,
    name: str,
    summary: str,
    description: str,
    examples: str,
    result: Mapping[str, str] | None,
    helper: tuple[str, Mapping[str, str]] | None = None,
    one_of: tuple[tuple[str, ...], ...] = (),
    at_most_one: tuple[tuple[str, ...], ...] = (),
    needs: tuple[Need, ...] = (),
    extra: str = "",
    built: bool = True,
    suspends: bool = False,
) -> Kind:
    """Build a kind's description; `examples` are YAML tasks, each after `# TITLE`."""
    own = _level(cast(shape.StructType, shape.type_info(model)), f"tools.{name}")
    return Kind(
        name=name,
        summary=summary,
        description=cleandoc(description),
        input=Level(own.name, summary, own.fields, open=own.open),
        one_of=one_of,
        at_most_one=at_most_one,
        needs=needs,
        result=result,
        helper=helper,
        extra=extra,
        built=built,
        examples=_examples(examples),
        suspends=suspends,
    )


def _examples(text: str) -> tuple[KindExample, ...]:
    parts = re.split(r"^# (.+)\n", cleandoc(text), flags=re.MULTILINE)
    return tuple(KindExample(title, yaml.strip() + "\n") for title, yaml in zip(parts[1::2], parts[2::2], strict=True))


def decode(model: type[Model], level: Level, data: Mapping[str, Any]) -> Model:
    """Convert rendered inputs to the model. Raises `msgspec.ValidationError`.

    Aliases become names; a null field is treated as absent. Mixed text renders as a string, so `"5"` is accepted for a
    number, and 5 for text.
    """
    return msgspec.convert(_canonical(data, level), model, strict=False)


def _canonical(data: Mapping[str, Any], level: Level) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for key, value in data.items():
        known = level.field(key)
        if known is None:
            named[key] = value
        elif value is not None or known.required:
            named[known.name] = _canonical_value(value, known.type)
    return named


def _canonical_value(value: Any, type_: Type) -> Any:
    if type(type_) is Type:
        return value
    for option in type_.options if isinstance(type_, OneOf) else (type_,):
        match option:
            case Number() if isinstance(value, int | float) and not isinstance(value, bool):
                return value
            case Flag() if isinstance(value, bool):
                return value
            case Text() if isinstance(value, bool | int | float):
                return as_yaml(value)
            case Choice(synonyms=synonyms) if synonyms and isinstance(value, str):
                return option.meant(value)
            case LevelOf(own=Level() as level) if isinstance(value, Mapping):
                return _canonical(value, level)
            case MapOf(inner) if isinstance(value, Mapping):
                return {key: _canonical_value(item, inner) for key, item in value.items()}
            case ListOf(inner) if isinstance(value, list):
                return [_canonical_value(item, inner) for item in value]
    return value


def _level(struct: shape.StructType, name: str) -> Level:
    fields = tuple(_field(known, f"{name}.{known.encode_name}") for known in struct.fields)
    return Level(name, _summary(struct.cls), fields, open=not struct.forbid_unknown_fields)


def _field(known: shape.Field, path: str) -> Field:
    schema: Mapping[str, Any] = {}
    extra: Mapping[str, Any] = {}
    if isinstance(known.type, shape.Metadata):
        schema, extra = known.type.extra_json_schema or {}, known.type.extra or {}
    examples = schema.get("examples") or ()
    return Field(
        name=known.encode_name,
        type=_type(known.type, path, nullable=True),
        summary=schema.get("description", ""),
        required=known.required,
        default="" if known.default is msgspec.NODEFAULT or known.default is None else as_yaml(known.default),
        example=as_yaml(examples[0]) if examples else "",
        aliases=tuple(extra.get("aliases", ())),
        rendered=extra.get("rendered", "worker"),
    )


def _type(info: shape.Type, path: str, code: str = "", *, nullable: bool = False) -> Type:
    """Convert a type of the model to one of the language. Raises TypeError.

    Any field may be null, which means absent. Inside lists and maps null is a value, and the language has no type for
    "this or null": such a place accepts anything.
    """
    match info:
        case shape.Metadata():
            extra = info.extra or {}
            found = _type(info.type, path, extra.get("code", code), nullable=nullable)
            return replace(found, synonyms=extra["synonyms"]) if "synonyms" in extra else found
        case shape.StrType():
            return Text(code)
        case shape.BoolType():
            return Flag()
        case shape.IntType() | shape.FloatType() if info.gt is None and info.lt is None:
            return Number(integer=isinstance(info, shape.IntType), least=info.ge, most=info.le)
        case shape.LiteralType() if all(isinstance(word, str) for word in info.values):
            return Choice(cast(tuple[str, ...], info.values))
        case shape.ListType():
            return ListOf(_type(info.item_type, path, code), info.min_length or 0)
        case shape.DictType():
            return MapOf(_type(info.value_type, path, code))
        case shape.StructType():
            return LevelOf(path, _level(info, path))
        case shape.UnionType() if nullable or not info.includes_none:
            options = tuple(_type(one, path, code) for one in info.types if not isinstance(one, shape.NoneType))
            ordered = _in_order(options)
            return ordered[0] if len(ordered) == 1 else OneOf(ordered)
        case shape.AnyType() | shape.UnionType():
            return Type()
    raise TypeError(
        f"{path}: an input of type {info!r} has no counterpart in the language; use text, numbers, true or "
        "false, words, lists, maps or a nested Struct."
    )


def _in_order(options: tuple[Type, ...]) -> tuple[Type, ...]:
    """Sort narrow alternatives first, because the first match wins.

    An integer beside a number of any kind is dropped: it would refuse a fraction.
    """
    numbers = [option for option in options if isinstance(option, Number)]
    wide = [number for number in numbers if not number.integer]
    kept = [option for option in options if not (wide and isinstance(option, Number) and option.integer)]
    return tuple(sorted(kept, key=lambda option: isinstance(option, Text)))


def _summary(model: type) -> str:
    return cleandoc(model.__doc__ or "").partition("\n")[0]


def as_yaml(value: Any) -> str:
    """Format a value for YAML: plain if unambiguous, else as JSON."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS_WITH_A_MEANING:
        return value
    text = json.dumps(value, ensure_ascii=False)
    # Not the whole text: YAML bounds the length of a key.
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
