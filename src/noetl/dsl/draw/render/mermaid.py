"""Draw a playbook in Mermaid. Tested in tests/unit/dsl/draw/test_mermaid.py."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.draw.model.captions import caption, shortened
from noetl.dsl.draw.model.picture import Link, Picture, Vertex

# Inside a quoted label, Mermaid reads `#name;` as one character: escapes for everything that it or HTML interprets.
_ENTITIES = {'"': "quot", "#": "35", "&": "amp", "<": "lt", ">": "gt", "`": "96", "{": "123", "}": "125", "\\": "92"}
_CLASSES = {
    "entry": "stroke-width:3px",
    "final": "stroke-width:3px,stroke-dasharray:1 0",
    "unknown": "stroke-dasharray:6 4,stroke:#c2410c,color:#c2410c",
    "unreachable": "stroke-dasharray:2 3,opacity:0.6",
}


def draw_mermaid(picture: Picture) -> str:
    """Return a drawing as a Mermaid flow chart."""
    lines = ["flowchart TD", *_vertices(picture)]
    lines += [_link(number, link, picture) for number, link in enumerate(picture.links)]
    lines += [f"  linkStyle {','.join(map(str, failing))} stroke:#c2410c" for failing in [_failing(picture)] if failing]
    groups = {
        "entry": [picture.entry] if picture.entry is not None else [],
        "final": [picture.final] if picture.final is not None else [],
        "unknown": [number for number, vertex in enumerate(picture.vertices) if not vertex.known],
        "unreachable": [n for n, vertex in enumerate(picture.vertices) if vertex.known and not vertex.reachable],
    }
    for name, members in groups.items():
        if members:
            lines.append(f"  classDef {name} {_CLASSES[name]}")
            lines.append(f"  class {','.join(f'n{number}' for number in members)} {name}")
    return "".join(f"{line}\n" for line in lines)


def _vertices(picture: Picture) -> Iterator[str]:
    for number, vertex in enumerate(picture.vertices):
        opened, closed = _shape(vertex)
        lines = [f"<b>{_escaped(shortened(vertex.name))}</b>", *map(_escaped, caption(vertex))]
        yield f'  n{number}{opened}"{"<br/>".join(lines)}"{closed}'


def _shape(vertex: Vertex) -> tuple[str, str]:
    if vertex.loop:
        return "[[", "]]"
    if vertex.gate is not None:
        return "{{", "}}"
    return ("[", "]") if vertex.tasks or not vertex.known else ("([", "])")


def _link(number: int, link: Link, picture: Picture) -> str:
    dotted = link.outcome == "failure" or number in picture.ordered.back
    said = f'|"{_escaped(shortened(link.said))}"|' if link.said else ""
    return f"  n{link.source} {'-.->' if dotted else '-->'}{said} n{link.target}"


def _failing(picture: Picture) -> list[int]:
    return [number for number, link in enumerate(picture.links) if link.outcome == "failure"]


def _escaped(text: str) -> str:
    return "".join(f"#{_ENTITIES[char]};" if char in _ENTITIES else char for char in text)
