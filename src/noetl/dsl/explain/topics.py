"""All topics of `noetl explain`. Tested in tests/unit/dsl/test_explain.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Literal

from msgspec import Struct

from noetl.dsl.analysis.scopes import SCOPES
from noetl.dsl.explain.field_paths import Place, fields_below, levels_of, places
from noetl.dsl.explain.pages import callee_page, field_page, kind_page, level_page, rule_page, scope_page
from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.grammar.types import Choice, Field, leaves
from noetl.dsl.rules import RULES
from noetl.expr import FILTERS, FUNCTIONS, TESTS, Callee
from noetl.expr.builtins.methods import DATETIME, DURATION, LIST, MAP, TEXT

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
    """One entry of a topic."""

    category: Category
    title: str
    summary: str
    write: Callable[[], str]


class Topic(Struct, frozen=True):
    """A name with all its entries."""

    name: str
    entries: tuple[Entry, ...]

    @property
    def markdown(self) -> str:
        """The pages of all entries, after an overview where there are several."""
        if len(self.entries) == 1:
            return self.entries[0].write()
        overview = f"`{self.name}` has {len(self.entries)} meanings:\n\n"
        overview += "".join(f"- {_SAID[entry.category]} `{entry.title}`: {entry.summary}\n" for entry in self.entries)
        return overview + "".join(f"\n{entry.write()}" for entry in self.entries)


def topics(kinds: Kinds) -> Mapping[str, Topic]:
    """Return every topic by name."""
    by_name: dict[str, list[Entry]] = {}
    for name, entry in (*_things(kinds), *_fields(kinds)):
        entries = by_name.setdefault(name, [])
        if entry not in entries:
            entries.append(entry)
    for word, entry in _words():
        # A word such as `retry` is explained by its field, unless another topic has that name.
        entries = by_name.setdefault(word, [])
        if all(other.category == "value" for other in entries) and entry not in entries:
            entries.append(entry)
    return {name: Topic(name, tuple(entries)) for name, entries in by_name.items()}


def find(name: str, known: Mapping[str, Topic]) -> Topic | None:
    """Return the topic of a name; case, dashes and list marks do not matter."""
    wanted = _plain(name)
    return known.get(name) or next((topic for other, topic in known.items() if _plain(other) == wanted), None)


def suggestions(name: str, known: Iterable[str]) -> list[str]:
    """Return the names closest to an unknown one."""
    by_plain = {_plain(other): other for other in known}
    return [by_plain[match] for match in get_close_matches(_plain(name), by_plain, n=5, cutoff=0.6)]


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_").replace("[]", "").strip().strip(".")


def _things(kinds: Kinds) -> Iterator[tuple[str, Entry]]:
    for kind in kinds.values():
        yield kind.name, Entry("kind", kind.name, kind.summary, _Text(kind_page, (kind,)))
    for rule in RULES:
        entry = Entry("diagnostic", rule.code, rule.summary, _Text(rule_page, (rule,)))
        yield rule.code, entry
        yield rule.name, entry
    for scope, summary in SCOPES.items():
        yield scope, Entry("scope", scope, summary, _Text(scope_page, (scope,)))
    for table in (FILTERS, TESTS, FUNCTIONS, *METHODS.values()):
        for callee in table.values():
            yield callee.name, Entry(callee.kind, callee.name, callee.summary, _Text(callee_page, (callee,)))
    for level in LEVELS.values():
        yield level.name, Entry("map", level.name, level.summary, _Text(level_page, (level,)))


class _Text(Struct, frozen=True):
    """A page that is written on demand; equal arguments make equal pages."""

    write: Callable[..., str]
    arguments: tuple[object, ...]

    def __call__(self) -> str:
        return self.write(*self.arguments)


def _fields(kinds: Kinds) -> Iterator[tuple[str, Entry]]:
    own = (place for kind in kinds.values() for place in fields_below((kind.name,), kind.input))
    for field, places_of in _together((*places(), *own)).items():
        entry = _entry("field", field, places_of)
        for name in dict.fromkeys(name for place in places_of for name in place.names()):
            yield name, entry


def _together(all_places: Iterable[Place]) -> dict[Field, tuple[Place, ...]]:
    same: dict[Field, list[Place]] = {}
    for place in all_places:
        same.setdefault(place.field, []).append(place)
    return {field: tuple(held) for field, held in same.items()}


def _entry(category: Category, field: Field, places: tuple[Place, ...]) -> Entry:
    shown = min((place.spoken() for place in places), key=lambda name: (name.count("."), len(name)))
    return Entry(category, shown, field.summary, _Text(_field_text, (field, shown, places)))


def _field_text(field: Field, shown: str, places: tuple[Place, ...]) -> str:
    page = field_page(field, shown, [place.level for place in places], [".".join(place.path) for place in places])
    below = list(dict.fromkeys(levels_of(field.type)))
    return "\n".join([page, *(level_page(level, heading="##") for level in below)])


def _words() -> Iterator[tuple[str, Entry]]:
    for field, places_of in _together(places()).items():
        words = [word for leaf in leaves(field.type) if isinstance(leaf, Choice) for word in leaf.words]
        entry = _entry("value", field, places_of)
        for word in words:
            yield word, entry
