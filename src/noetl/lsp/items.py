"""One thing that may stand at the cursor, free of the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ItemKind = Literal[
    "field", "kind", "word", "step", "task", "scope", "key", "filter", "test", "function", "credential", "playbook"
]


@dataclass(frozen=True, slots=True)
class Item:
    """A completion: what is shown, what is written, and what is said about it (Markdown)."""

    label: str
    kind: ItemKind
    detail: str = ""
    text: str = ""
    insert: str = ""  # where it differs from the label
    rank: int = 1  # lower comes first
