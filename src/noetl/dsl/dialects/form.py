"""A form of an older dialect: where it stands and what replaces it."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar

_SHAPES: Final[dict[str, type[Node]]] = {"map": MapNode, "list": ListNode, "scalar": Scalar}


class LegacyForm(Struct, frozen=True):
    """A key of an older dialect at one level of the language."""

    dialect: Literal["v1", "v2"]
    level: str
    key: str
    meant: str  # what it did
    canonical: str  # what to write instead
    replaces: str = ""  # the field that is not missing where this form stands in for it
    routes: bool = False  # it moved tokens, so the net is incomplete without it
    absorbs: bool = False  # unknown keys beside it belong to the same form
    below: str = ""  # the value is a list of maps of this level, which may hold older forms
    values: tuple[str, ...] = ()  # matches only these values; empty: any
    shape: Literal["", "map", "list", "scalar"] = ""  # matches only values of this shape
    unless: tuple[str, ...] = ()  # does not match beside one of these keys

    def matches(self, node: Node, owner: MapNode) -> bool:
        """Return whether a value of this form's key, in the map `owner`, is this form."""
        if self.shape and not isinstance(node, _SHAPES[self.shape]):
            return False
        if self.values and not (isinstance(node, Scalar) and node.text in self.values):
            return False
        return not any(name in owner for name in self.unless)
