"""Describe types and fields in words. Tested in tests/unit/dsl/test_explain.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noetl.dsl.grammar.kinds import Kind
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
    Text,
    Type,
    leaves,
)
from noetl.dsl.grammar.wording import in_full

_CODE = {"sql": "SQL", "shell": "a shell command", "python": "Python code"}
_RENDERED = {
    "start": "rendered when the execution starts",
    "server": "rendered by the server",
    "worker": "rendered by the worker",
}


def type_words(kind: Type, link: bool = False) -> str:
    """Describe a type, optionally with links to the sections of other levels."""
    match kind:
        case Text(code):
            return f"text ({_CODE[code]})" if code else "text"
        case Flag():
            return "true or false"
        case Number():
            return _number(kind)
        case Choice(words, prefixes):
            return listed([f"`{word}`" for word in (*words, *(f"{prefix}…" for prefix in prefixes))], "or")
        case ListOf(item):
            return f"list of {_part(item, link)}" if type(item) is not Type else "list"
        case MapOf(inner):
            return f"map of {_part(inner, link)}" if type(inner) is not Type else "map"
        case LevelOf(name, own):
            return f"map ({', '.join(f'`{field.name}`' for field in own.fields)})" if own else _level(name, link)
        case OneOf(options):
            return " or ".join(dict.fromkeys(type_words(option, link) for option in options))
    return "anything"


def _part(kind: Type, link: bool) -> str:
    words = type_words(kind, link)
    return f"({words})" if isinstance(kind, OneOf) and " or " in words else words


def _number(kind: Number) -> str:
    bounds = []
    if kind.least is not None:
        bounds.append(f"at least {in_full(kind.least)}")
    if kind.most is not None:
        bounds.append(f"at most {in_full(kind.most)}")
    noun = "whole number" if kind.integer else "finite number" if kind.finite else "number"
    return " ".join([noun, " and ".join(bounds)]).strip()


def _level(name: str, link: bool) -> str:
    return f"[{name}](#{name})" if link else f"map `{name}`"


def listed(words: Iterable[str], before_last: str = "and") -> str:
    """Join words for a sentence."""
    items = list(words)
    return f" {before_last} ".join(filter(None, [", ".join(items[:-1]), items[-1]])) if items else ""


def field_facts(field: Field, link: bool = False) -> str:
    """Describe a field on one line."""
    facts = [type_words(field.type, link)]
    if field.required:
        facts.append("required")
    if field.default:
        facts.append(f"default {field.default if ' ' in field.default else f'`{field.default}`'}")
    sentences = [f"{', '.join(facts)}. {field.summary}"]
    if field.aliases:
        sentences.append(f"Alias: {listed([f'`{alias}`' for alias in field.aliases], 'or')}.")
    if field.example:
        sentences.append(f"Example: `{field.name}: {field.example}`.")
    return " ".join(sentences)


def field_list(level: Level, link: bool = False) -> Iterator[str]:
    """Yield one line of a Markdown list for each field of a level."""
    for field in level.fields:
        yield f"- `{field.name}`: {field_facts(field, link)}"
        for leaf in leaves(field.type):
            if isinstance(leaf, LevelOf) and leaf.own:  # a level of this field only, without a section
                yield from (f"    {line}" for line in field_list(leaf.own, link))


def rendering(field: Field) -> str:
    """Describe where a template in a field is rendered."""
    return f"May be a template, {_RENDERED[field.rendered]}." if field.rendered else ""


def conditions(kind: Kind) -> Iterator[str]:
    """Describe which inputs of a kind require or exclude each other."""
    for group in kind.one_of:
        yield f"Exactly one of {listed([f'`{name}`' for name in group])} is required."
    for group in kind.at_most_one:
        yield f"At most one of {listed([f'`{name}`' for name in group])} is allowed."
    for need in kind.needs:
        condition = f"`{need.field}: {need.value}`" if need.value else f"`{need.field}`"
        yield f"{condition} requires {listed([f'`{name}`' for name in need.fields])}."
