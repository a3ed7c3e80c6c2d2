"""Draw a playbook for Graphviz. Tested in tests/unit/dsl/draw/test_dot.py."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.draw.model.captions import caption, shortened
from noetl.dsl.draw.model.picture import Link, Picture, Vertex

_HEAD = (
    '  graph [rankdir=TB, fontname="Helvetica", nodesep=0.4, ranksep=0.6]',
    '  node [shape=box, style="rounded,filled", fillcolor="#f8fafc", color="#64748b", fontname="Helvetica"]',
    '  edge [color="#64748b", fontname="Helvetica", fontsize=10]',
)


def draw_dot(picture: Picture) -> str:
    """Return a drawing as a `digraph`."""
    lines = [f"digraph {_quoted(picture.name or 'playbook')} {{", *_HEAD]
    for number, vertex in enumerate(picture.vertices):
        label = "\n".join([shortened(vertex.name), *caption(vertex)])
        attributes = ", ".join([f"label={_quoted(label)}", *_vertex_attributes(picture, number, vertex)])
        lines.append(f"  n{number} [{attributes}]")
    for number, link in enumerate(picture.links):
        attributes = ", ".join(_link_attributes(picture, number, link))
        lines.append(f"  n{link.source} -> n{link.target}{f' [{attributes}]' if attributes else ''}")
    return "\n".join([*lines, "}", ""])


def _vertex_attributes(picture: Picture, number: int, vertex: Vertex) -> Iterator[str]:
    if vertex.desc:
        yield f"tooltip={_quoted(vertex.desc)}"
    if vertex.loop:
        yield "peripheries=2"
    if vertex.gate is not None:
        yield "shape=octagon"
    if number == picture.entry:
        yield "penwidth=2.5"
    if not vertex.known:
        yield 'style=dashed, color="#c2410c", fontcolor="#c2410c"'
    elif not vertex.reachable:
        yield "style=dotted"
    elif vertex.gate is not None:
        yield "style=filled"  # an octagon has no corners to round
    if number == picture.final and vertex.known:
        yield 'color="#7c3aed"'


def _link_attributes(picture: Picture, number: int, link: Link) -> Iterator[str]:
    if link.said:
        yield f"label={_quoted(shortened(link.said))}"
    if link.when and link.said != link.when:
        yield f"tooltip={_quoted(link.when)}"
    if link.outcome == "failure":
        yield 'color="#c2410c", fontcolor="#c2410c"'
    if link.kind == "compensate":
        yield "style=dotted, constraint=false"
    elif number in picture.ordered.back:
        yield "style=dashed"


def _quoted(text: str) -> str:
    """Quote a text for Graphviz; control characters become `\\n` or spaces."""
    kept = "".join(char if char == "\n" or char.isprintable() else " " for char in text)
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
