"""What a recognised older form is: where it stands and what replaces it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class LegacyForm:
    """A key of an older dialect at one level of the language."""

    dialect: Literal["v1", "v2"]
    level: str
    key: str
    meant: str  # what it did
    canonical: str  # what to write instead
    routes: bool = False  # it moved tokens, so the net of this playbook is not the whole story
    values: tuple[str, ...] = ()  # only with one of these values; empty: with any
    shape: Literal["", "map", "list", "scalar"] = ""  # only where the value has this shape
