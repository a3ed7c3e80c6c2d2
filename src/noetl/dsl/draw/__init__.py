"""Drawings of a playbook's net as text, Mermaid, Graphviz, SVG and JSON."""

from __future__ import annotations

from noetl.dsl.draw.data import as_data, draw_json
from noetl.dsl.draw.dot import draw_dot
from noetl.dsl.draw.mermaid import draw_mermaid
from noetl.dsl.draw.picture import Link, Picture, Vertex, picture
from noetl.dsl.draw.svg import draw_svg
from noetl.dsl.draw.text import draw_text

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
