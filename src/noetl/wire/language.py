"""Bodies of the language API: what an editor in a page asks about a text.

`start`, `end` and `offset` count UTF-16 code units from the start of the text, as JavaScript does. Tested in
tests/server/api/test_language.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from noetl.wire.answers import Answer, Diagnosed
from noetl.wire.requests import Asked, Content, Count
from noetl.wire.screens.graph import Graph


class TextAsked(Asked, frozen=True):
    """A playbook's text, as it is in the editor."""

    content: Content


class PlaceAsked(TextAsked, frozen=True):
    """A place in a playbook's text."""

    offset: Count


class RenameAsked(PlaceAsked, frozen=True):
    """A new name for what is at a place; without it, only what would be renamed."""

    name: Annotated[str, Meta(max_length=500)] | None = None


class Range(Answer, frozen=True):
    """Part of the text."""

    start: int
    end: int


class TextEdit(Range, frozen=True):
    """Replacement text for a part of the text."""

    text: str


class QuickFix(Answer, frozen=True):
    """Edits that remove a diagnostic and add no other."""

    title: str
    edits: list[TextEdit]


class LocatedDiagnostic(Diagnosed, frozen=True):
    """A diagnostic with its range, the reason of its rule, and quick fixes."""

    start: int
    end: int
    why: str
    fixes: list[QuickFix]


class Symbol(Range, frozen=True):
    """A section, step, task or key of the workload, with what is inside it."""

    name: str
    kind: str  # section, step, task or key
    detail: str
    name_start: int
    name_end: int
    children: list[Symbol]


class TextChecked(Answer, frozen=True):
    """Diagnostics, outline and graph of a text."""

    whole: bool  # it can be read to its end
    diagnostics: list[LocatedDiagnostic]
    symbols: list[Symbol]
    graph: (
        Graph | None
    )  # null: the text cannot be read, or is too large to be drawn; its hash is empty if it has errors


class Completion(Answer, frozen=True):
    """Text to insert; `text` describes it in Markdown, lower ranks come first."""

    label: str
    kind: str
    detail: str
    text: str
    insert: str
    rank: int


class CompletionList(Range, frozen=True):
    """CompletionList at a place; they replace the text from `start` to `end`."""

    items: tuple[Completion, ...]


class HoverText(Range, frozen=True):
    """Description of a part of the text, in Markdown."""

    text: str


class Hovered(Answer, frozen=True):
    """Description of what is at a place; null where nothing is known."""

    hover: HoverText | None = None


class Definitions(Answer, frozen=True):
    """Definitions and all mentions of what is at a place."""

    definitions: list[Range]
    mentions: list[Range]


class Renamed(Answer, frozen=True):
    """What a rename renames; its place and name are null where nothing can be renamed."""

    target: Range | None
    name: str | None
    edits: list[TextEdit]


class Formatted(Answer, frozen=True):
    """Edits that format a text; none if it is formatted or cannot be."""

    edits: list[TextEdit]
