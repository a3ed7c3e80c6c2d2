"""Drawings of a playbook's net as text, Mermaid, Graphviz, SVG and JSON."""

from __future__ import annotations

from noetl.dsl.draw.model.picture import Link, Picture, Vertex, picture
from noetl.dsl.draw.render.dot import draw_dot
from noetl.dsl.draw.render.graph_json import as_data, draw_json
from noetl.dsl.draw.render.mermaid import draw_mermaid
from noetl.dsl.draw.render.svg import draw_svg
from noetl.dsl.draw.render.text import draw_text

__all__ = [
    "Link",
    "Picture",
    "Vertex",
    "as_data",
    "draw_dot",
    "draw_json",
    "draw_mermaid",
    "draw_svg",
    "draw_text",
    "picture",
]
