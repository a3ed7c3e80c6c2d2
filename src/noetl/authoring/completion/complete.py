"""Complete fields, kinds, words, names of steps and tasks, and template code.

A marker word is inserted at the cursor, and the grammar or the template around it determines what is allowed there. Works
in documents that cannot be parsed. Tested in tests/unit/authoring/completion/test_*.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from noetl.authoring.analysis.reading import Reading
from noetl.authoring.completion.fields import field_items, free_key_items
from noetl.authoring.completion.items import Item
from noetl.authoring.completion.templates import template_items
from noetl.authoring.completion.values import value_items
from noetl.authoring.language.grammar_at import Spot, spot_at
from noetl.dsl.reading.nodes import Scalar

_CLOSING = re.compile(r"[\w.-]*(?:[\"']|[ \t]*:)")
_ONLY_ITEM = re.compile(r"[ \t]*(?:- +)*$")


@dataclass(frozen=True, slots=True)
class Completions:
    """Completions at the cursor; they replace the text from `start` to the cursor."""

    start: int
    items: tuple[Item, ...]


def complete(reading: Reading, cursor: int) -> Completions:
    marked, mark = reading.marked(cursor)
    spot = spot_at(marked.subject.document.root, marked.subject.kinds, cursor)
    if spot is None or not isinstance(spot.node, Scalar) or mark not in spot.node.text:
        return Completions(cursor, ())
    inside = _in_template(marked, mark, cursor) if "{" in spot.node.text else None
    if inside is not None:
        return inside
    prefix = spot.node.text.split(mark)[0]
    start = cursor - len(prefix) if reading.text.endswith(prefix, 0, cursor) else cursor
    if spot.is_key:
        items = field_items(spot, mark, separated=_is_separated(reading.text, cursor)) or free_key_items(
            marked, spot, mark
        )
    else:
        items = value_items(marked, spot, cursor)
        if _stands_alone(reading.text, start) and not spot.node.style:
            items += field_items(_as_key(spot), mark, separated=False)
    return Completions(start, tuple(items))


def _in_template(marked: Reading, mark: str, cursor: int) -> Completions | None:
    for site in marked.sites_at(cursor):
        place = site.node.text.find(mark)
        found = template_items(marked.subject, site, place) if place >= 0 else None
        if found is not None:
            return Completions(cursor - len(found.prefix), found.items)
    return None


def _stands_alone(text: str, start: int) -> bool:
    """Whether only dashes precede a word on its line, so it may become a key."""
    line = text.rfind("\n", 0, start) + 1
    return _ONLY_ITEM.match(text[line:start]) is not None


def _is_separated(text: str, cursor: int) -> bool:
    return _CLOSING.match(text, cursor) is not None


def _as_key(spot: Spot) -> Spot:
    return Spot(spot.node, spot.type, None, None, None, spot.key, True, None, spot.path)
