"""Types of the language's fields, as small frozen descriptions.

One description serves the shape checks, the JSON Schema, the reference pages, `noetl explain` and the editor.
Tool kinds describe their inputs with the same types. Tested in tests/unit/dsl/checking/test_shape.py and test_schema.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar


class Type(Struct, frozen=True):
    """Any value."""


class Text(Type, frozen=True):
    """A string; `code` names the language inside it: `sql`, `shell` or `python`."""

    code: str = ""
    length: tuple[int, int] | None = None  # fewest and most characters; that of a template is not known


class Flag(Type, frozen=True):
    """true or false."""


class Number(Type, frozen=True):
    """A number; `integer` excludes fractions, `least` and `most` are its bounds."""

    integer: bool = False
    least: float | None = None
    most: float | None = None
    finite: bool = False  # neither infinite nor `.nan`


class Choice(Type, frozen=True):
    """One of a few words."""

    words: tuple[str, ...]
    prefixes: tuple[str, ...] = ()  # `route_edge:` accepts any word after it
    synonyms: tuple[tuple[str, str], ...] = ()  # another spelling, and the word that it means

    def meant(self, word: str) -> str:
        """Return the word that a spelling means."""
        return dict(self.synonyms).get(word, word)


class ListOf(Type, frozen=True):
    """A list of at least `least` items."""

    item: Type
    least: int = 0


class MapOf(Type, frozen=True):
    """A map with free keys."""

    value: Type


class LevelOf(Type, frozen=True):
    """A map with the fields of a level; `own` is a level outside the grammar."""

    level: str
    own: Level | None = None  # a map inside a tool's input


class OneOf(Type, frozen=True):
    """The first alternative that fits the node's shape, or the one of `pick`."""

    options: tuple[Type, ...]
    pick: Callable[[Node], Type | None] | None = None


def leaves(kind: Type) -> Iterator[Type]:
    """Yield the types inside lists, maps and alternatives, or the type itself."""
    match kind:
        case ListOf(inner) | MapOf(inner):
            yield from leaves(inner)
        case OneOf(options):
            for option in options:
                yield from leaves(option)
        case _:
            yield kind


_NUMBERS = (int, float)
_FITTING: dict[type[Type], tuple[type[Node], Any]] = {
    LevelOf: (MapNode, None),
    MapOf: (MapNode, None),
    ListOf: (ListNode, None),
    Text: (Scalar, (str, int, float)),
    Flag: (Scalar, bool),
    Number: (Scalar, _NUMBERS),
    Choice: (Scalar, str),
}


def fits(node: Node, kind: Type) -> bool:
    """Return whether a node has the outer shape of a type."""
    fitting = _FITTING.get(type(kind))
    if fitting is None:
        return not isinstance(kind, OneOf) or any(fits(node, option) for option in kind.options)
    held, wanted = fitting
    if held is not Scalar:
        return isinstance(node, held)
    # In Python a boolean is an integer; in a playbook it is not a number.
    value = node.value if isinstance(node, Scalar) else None
    return isinstance(value, wanted) and (wanted is not _NUMBERS or not isinstance(value, bool))


Rendered = Literal["", "start", "server", "worker"]


class Field(Struct, frozen=True):
    """One key of a map; `rendered` says where templates in it are rendered."""

    name: str
    type: Type
    summary: str
    required: bool = False
    default: str = ""
    example: str = ""
    aliases: tuple[str, ...] = ()
    rendered: Rendered = ""


class Level(Struct, frozen=True):
    """A map of the language: a step, an arc, a policy rule, a tool's input."""

    name: str
    summary: str
    fields: tuple[Field, ...]
    open: bool = False  # allows other keys
    example: str = ""
    required: tuple[Field, ...] = ()  # derived from `fields`, like the next two
    _by_name: Mapping[str, Field] = {}
    _names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        by_name = {name: known for known in reversed(self.fields) for name in (*known.aliases, known.name)}
        force_setattr(self, "_by_name", by_name)
        force_setattr(self, "required", tuple(known for known in self.fields if known.required))
        force_setattr(self, "_names", tuple(name for known in self.fields for name in (known.name, *known.aliases)))

    def __hash__(self) -> int:
        return hash((self.name, self.fields))

    def field(self, name: str) -> Field | None:
        return self._by_name.get(name)

    def names(self) -> tuple[str, ...]:
        return self._names
