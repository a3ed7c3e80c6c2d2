"""Everything that can be explained, by every name that people may call it.

One name may stand for several things: `input` is a field and a scope, `mode` a field of three maps. A topic then holds all of
them. Texts are written when they are asked for. Tested in tests/unit/dsl/test_explain.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Literal

from msgspec import Struct

from noetl.dsl.explain.pages import callee_page, field_page, kind_page, level_page, rule_page, scope_page
from noetl.dsl.explain.places import Place, fields_below, levels_of, places
from noetl.dsl.grammar import LEVELS
from noetl.dsl.kinds import Kinds
from noetl.dsl.rules import RULES
from noetl.dsl.scopes import SCOPES
from noetl.dsl.types import Choice, Field, ListOf, MapOf, OneOf, Type
from noetl.expr import FILTERS, FUNCTIONS, TESTS, Callee
from noetl.expr.methods import DATETIME, DURATION, LIST, MAP, TEXT

Category = Literal["kind", "diagnostic", "field", "map", "scope", "filter", "test", "function", "method", "value"]
CATEGORIES: dict[Category, str] = {
    "kind": "Tool kinds",
    "diagnostic": "Diagnostics",
    "scope": "Scopes of templates",
    "filter": "Filters",
    "test": "Tests",
    "function": "Functions",
    "method": "Methods",
    "map": "Maps of the language",
    "field": "Fields of the language",
    "value": "Values of fields",
}
METHODS: dict[str, Mapping[str, Callee]] = {
    kind: {name: Callee(name, "method", call) for name, call in sorted(table.items())}
    for kind, table in (("text", TEXT), ("list", LIST), ("map", MAP), ("time", DATETIME), ("duration", DURATION))
}
_SAID: dict[Category, str] = {**{category: category for category in CATEGORIES}, "value": "value of"}


class Entry(Struct, frozen=True):
    """One thing that can be explained."""

    category: Category
    title: str
    summary: str
    write: Callable[[], str]


class Topic(Struct, frozen=True):
    """A name, and all that it stands for."""

    name: str
    entries: tuple[Entry, ...]

    @property
    def markdown(self) -> str:
        """The texts of all entries; where there are several, what each is."""
        if len(self.entries) == 1:
            return self.entries[0].write()
        said = f"`{self.name}` stands for {len(self.entries)} things:\n\n"
        said += "".join(f"- {_SAID[entry.category]} `{entry.title}`: {entry.summary}\n" for entry in self.entries)
        return said + "".join(f"\n{entry.write()}" for entry in self.entries)


def topics(kinds: Kinds) -> Mapping[str, Topic]:
    """Give every topic by name."""
    found: dict[str, list[Entry]] = {}
    for name, entry in (*_things(kinds), *_fields(kinds)):
        entries = found.setdefault(name, [])
        if entry not in entries:
            entries.append(entry)
    for word, entry in _words():
        # A word such as `retry` is explained by its field, unless something is called so itself.
        entries = found.setdefault(word, [])
        if all(other.category == "value" for other in entries) and entry not in entries:
            entries.append(entry)
    return {name: Topic(name, tuple(entries)) for name, entries in found.items()}


def find(name: str, known: Mapping[str, Topic]) -> Topic | None:
    """Give the topic of a name, however it is spelled: capitals, dashes and list marks do not matter."""
    wanted = _plain(name)
    return known.get(name) or next((topic for other, topic in known.items() if _plain(other) == wanted), None)


def suggestions(name: str, known: Iterable[str]) -> list[str]:
    """Give the names closest to one that is not known."""
    by_plain = {_plain(other): other for other in known}
    return [by_plain[found] for found in get_close_matches(_plain(name), by_plain, n=5, cutoff=0.6)]


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_").replace("[]", "").strip().strip(".")


def _things(kinds: Kinds) -> Iterator[tuple[str, Entry]]:
    for kind in kinds.values():
        yield kind.name, Entry("kind", kind.name, kind.summary, _later(kind_page, kind))
    for rule in RULES:
        entry = Entry("diagnostic", rule.code, rule.summary, _later(rule_page, rule))
        yield rule.code, entry
        yield rule.name, entry
    for scope, summary in SCOPES.items():
        yield scope, Entry("scope", scope, summary, _later(scope_page, scope))
    for table in (FILTERS, TESTS, FUNCTIONS, *METHODS.values()):
        for callee in table.values():
            yield callee.name, Entry(callee.kind, callee.name, callee.summary, _later(callee_page, callee))
    for level in LEVELS.values():
        yield level.name, Entry("map", level.name, level.summary, _later(level_page, level))


def _later(write: Callable[..., str], *arguments: object) -> Callable[[], str]:
    return _Text(write, arguments)


class _Text(Struct, frozen=True):
    """A text that is written when it is called for; two that would be the same are equal."""

    write: Callable[..., str]
    arguments: tuple[object, ...]

    def __call__(self) -> str:
        return self.write(*self.arguments)


def _fields(kinds: Kinds) -> Iterator[tuple[str, Entry]]:
    """Give the fields of the language and of the kinds, by every name."""
    own = (place for kind in kinds.values() for place in fields_below((kind.name,), kind.input))
    for field, found in _together((*places(), *own)).items():
        entry = _entry("field", field, found)
        for name in dict.fromkeys(name for place in found for name in place.names()):
            yield name, entry


def _together(all_places: Iterable[Place]) -> dict[Field, tuple[Place, ...]]:
    """Gather the places where the same field stands."""
    same: dict[Field, list[Place]] = {}
    for place in all_places:
        same.setdefault(place.field, []).append(place)
    return {field: tuple(found) for field, found in same.items()}


def _entry(category: Category, field: Field, found: tuple[Place, ...]) -> Entry:
    shown = min((place.spoken() for place in found), key=lambda name: (name.count("."), len(name)))
    return Entry(category, shown, field.summary, _later(_field_text, field, shown, found))


def _field_text(field: Field, shown: str, found: tuple[Place, ...]) -> str:
    page = field_page(field, shown, [place.level for place in found], [".".join(place.path) for place in found])
    below = list(dict.fromkeys(levels_of(field.type)))
    return "\n".join([page, *(level_page(level, heading="##") for level in below)])


def _words() -> Iterator[tuple[str, Entry]]:
    """Give the words that may be written as values, each with the fields that take it."""
    for field, found in _together(places()).items():
        words = [word for choice in _choices(field.type) for word in choice.words]
        entry = _entry("value", field, found)
        for word in words:
            yield word, entry


def _choices(kind: Type) -> Iterator[Choice]:
    match kind:
        case Choice():
            yield kind
        case ListOf(inner) | MapOf(inner):
            yield from _choices(inner)
        case OneOf(options):
            for option in options:
                yield from _choices(option)
