"""The types that fields of the language have: small frozen descriptions, no behaviour.

One description serves the shape checks, the JSON Schema, the reference pages, `noetl explain` and the editor.
Tool kinds describe their inputs with the same types. Tested in tests/unit/dsl/test_shape.py and test_schema.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as derived
from typing import Literal

from noetl.dsl.nodes import Node


@dataclass(frozen=True, slots=True)
class Type:
    """Any value at all."""


@dataclass(frozen=True, slots=True)
class Text(Type):
    """A string; `code` names the language inside it (`sql`, `shell`, `python`), which other checks use."""

    code: str = ""


@dataclass(frozen=True, slots=True)
class Flag(Type):
    """true or false."""


@dataclass(frozen=True, slots=True)
class Number(Type):
    """A number; `integer` excludes fractions, `least` and `most` are its bounds."""

    integer: bool = False
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Choice(Type):
    """One of a few words."""

    words: tuple[str, ...]
    prefixes: tuple[str, ...] = ()  # `route_edge:` accepts any word behind it


@dataclass(frozen=True, slots=True)
class ListOf(Type):
    """A list; `least` items at the least."""

    item: Type
    least: int = 0


@dataclass(frozen=True, slots=True)
class MapOf(Type):
    """A map with free keys."""

    value: Type


@dataclass(frozen=True, slots=True)
class LevelOf(Type):
    """A map with the fields of the level of that name; `own` is that level where the grammar does not hold it."""

    level: str
    own: Level | None = None  # a map inside a tool's input


@dataclass(frozen=True, slots=True)
class OneOf(Type):
    """The first alternative that fits the node's shape; `pick` decides where the shape alone cannot."""

    options: tuple[Type, ...]
    pick: Callable[[Node], Type | None] | None = None


Rendered = Literal["", "start", "server", "worker"]


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a map: its type, what it is for, and where a template in it is rendered (`""`: not a template)."""

    name: str
    type: Type
    summary: str
    required: bool = False
    default: str = ""
    example: str = ""
    aliases: tuple[str, ...] = ()
    rendered: Rendered = ""


@dataclass(frozen=True, slots=True)
class Level:
    """A map of the language: a step, an arc, a policy rule, a tool's input."""

    name: str
    summary: str
    fields: tuple[Field, ...]
    open: bool = False  # other keys are allowed
    example: str = ""
    required: tuple[Field, ...] = derived(init=False, repr=False, compare=False)  # the fields that must be there
    _by_name: Mapping[str, Field] = derived(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {name: known for known in reversed(self.fields) for name in (*known.aliases, known.name)}
        object.__setattr__(self, "_by_name", by_name)
        object.__setattr__(self, "required", tuple(known for known in self.fields if known.required))

    def field(self, name: str) -> Field | None:
        return self._by_name.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(name for known in self.fields for name in (known.name, *known.aliases))
