"""Draw the graph of a pinned playbook for a screen.

A pure function: the API calls it in a process of its own. Tested in tests/server/api/test_graph.py.
"""

from __future__ import annotations

from typing import Final

import msgspec

from noetl.dsl.draw import picture
from noetl.dsl.draw.render.screen import as_screen
from noetl.dsl.reading.nodes import Position
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.pin import unpinned
from noetl.wire.graph import Graph


def draw_graph(playbook: str, canonical: bytes, content: bytes) -> bytes:
    """Return the graph as JSON; with the playbook's text, steps have positions."""
    data = as_screen(picture(unpinned(canonical)), _positions(content) if content else {})
    return msgspec.json.encode(msgspec.convert({"hash": playbook, **data}, Graph))


def _positions(content: bytes) -> dict[str, Position]:
    document = parse(content, "playbook")
    found: dict[str, Position] = {}
    for step in normalize(document).workflow:
        if step.name_at is not None:
            found.setdefault(step.name, document.source.position(step.name_at.start))
    return found


DRAW_GRAPH: Final = f"{__name__}:{draw_graph.__name__}"
