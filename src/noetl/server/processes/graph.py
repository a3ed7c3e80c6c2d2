"""Draw the graph of a playbook for a screen.

Pure functions: the API calls them in a process of its own. Tested in tests/server/api/test_graph.py and test_language.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec
from msgspec.structs import replace

from noetl.dsl.draw import Picture, picture
from noetl.dsl.draw.render.screen import as_screen
from noetl.dsl.reading.nodes import Position, Source
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.pin import unpinned
from noetl.dsl.tree.playbook import Playbook
from noetl.wire.screens.graph import Graph

_KEPT_DRAWINGS: Final = 8


def draw_graph(playbook: str, canonical: bytes, content: bytes) -> bytes:
    """Return the graph as JSON; with the playbook's text, steps have positions."""
    document = parse(content, "playbook")
    positions = positions_of(normalize(document), document.source) if content else {}
    return msgspec.json.encode(graph_of(unpinned(canonical), positions, playbook))


def graph_of(playbook: Playbook, positions: Mapping[str, Position], content_hash: str) -> Graph:
    """Return the graph of a playbook, valid or not."""
    drawn = picture(playbook)
    graph = _laid_out(replace(drawn, vertices=tuple(replace(vertex, offset=None) for vertex in drawn.vertices)))
    nodes = [
        replace(node, line=place.line, column=place.column) if (place := positions.get(node.name)) else node
        for node in graph.nodes
    ]
    return replace(graph, hash=content_hash, nodes=nodes)


def positions_of(playbook: Playbook, source: Source) -> dict[str, Position]:
    """Return where the steps of a playbook are named in its text."""
    found: dict[str, Position] = {}
    for step in playbook.workflow:
        if step.name_at is not None:
            found.setdefault(step.name, source.position(step.name_at.start))
    return found


@lru_cache(_KEPT_DRAWINGS)  # most edits of a text leave its net as it is
def _laid_out(drawn: Picture) -> Graph:
    return msgspec.convert({"hash": "", **as_screen(drawn)}, Graph)


DRAW_GRAPH: Final = f"{__name__}:{draw_graph.__name__}"
