"""Completion item, independent of the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ItemKind = Literal[
    "field", "kind", "word", "step", "task", "scope", "key", "filter", "test", "function", "credential", "playbook"
]


@dataclass(frozen=True, slots=True)
class Item:
    """Completion: label, inserted text, and its description in Markdown."""

    label: str
    kind: ItemKind
    detail: str = ""
    text: str = ""
    insert: str = ""  # if it differs from the label
    rank: int = 1  # lower comes first
