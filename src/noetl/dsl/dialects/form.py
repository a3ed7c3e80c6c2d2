"""What a recognised older form is: where it stands and what replaces it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class LegacyForm(Struct, frozen=True):
    """A key of an older dialect at one level of the language."""

    dialect: Literal["v1", "v2"]
    level: str
    key: str
    meant: str  # what it did
    canonical: str  # what to write instead
    replaces: str = ""  # the field that is not missing where this form stands in for it
    routes: bool = False  # it moved tokens, so the net of this playbook is not the whole story
    absorbs: bool = False  # unknown keys beside it are a part of the same form
    below: str = ""  # older forms may stand inside: a list of maps of this level
    values: tuple[str, ...] = ()  # only with one of these values; empty: with any
    shape: Literal["", "map", "list", "scalar"] = ""  # only where the value has this shape
    unless: tuple[str, ...] = ()  # not where one of these keys stands beside it
