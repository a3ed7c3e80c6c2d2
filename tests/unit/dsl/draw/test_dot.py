"""Pictures as Graphviz text: read back by a small reader of that language."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from noetl.dsl.draw import Picture, draw_dot
from tests.unit.dsl.draw.samples import pictured, pictures

# Graphviz ends a text at a NUL; no control character has to come through.
TOKEN = re.compile(
    r'\s*("(?:[^"\\\x00-\x1f\x7f]|\\.)*"|->|[\[\]{}=,;]|[A-Za-z_][A-Za-z_0-9]*|-?\d+(?:\.\d+)?)', re.DOTALL
)


class Reader:
    """Reader of one digraph; raises ValueError where Graphviz would complain."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            match = TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"cannot read {text[at : at + 20]!r}")
            self.tokens.append(match[1])
            at = match.end()
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str, dict[str, str]]] = []
        self.graph()

    def take(self, *wanted: str) -> str:
        token = self.tokens.pop(0) if self.tokens else ""
        if wanted and token not in wanted:
            raise ValueError(f"{token!r} instead of {wanted}")
        return token

    def name(self) -> str:
        token = self.take()
        if not re.fullmatch(r'".*"|[A-Za-z_]\w*|-?[\d.]+', token, re.DOTALL):
            raise ValueError(f"{token!r} is no name")
        return (
            re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), token[1:-1])
            if token[0] == '"'
            else token
        )

    def graph(self) -> None:
        self.take("digraph")
        self.name()
        self.take("{")
        while self.tokens[0] != "}":
            self.statement()
        self.take("}")
        if self.tokens:
            raise ValueError("something follows the graph")

    def statement(self) -> None:
        first = self.name()
        if self.tokens[0] == "->":
            self.take()
            second = self.name()
            self.edges.append((first, second, self.attributes()))
        elif first in ("graph", "node", "edge"):
            self.attributes()
        else:
            self.nodes[first] = self.attributes()

    def attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.tokens[0] != "[":
            return found
        self.take("[")
        while self.tokens[0] != "]":
            key = self.name()
            self.take("=")
            if key in found:
                raise ValueError(f"{key} twice")
            found[key] = self.name()
            if self.tokens[0] == ",":
                self.take()
        self.take("]")
        return found


@given(pictures())
def test_any_picture_reads_back_with_all_its_steps_and_links(picture: Picture) -> None:
    read = Reader(draw_dot(picture))
    assert list(read.nodes) == [f"n{number}" for number in range(len(picture.vertices))]
    assert [(source, target) for source, target, _ in read.edges] == [
        (f"n{link.source}", f"n{link.target}") for link in picture.links
    ]


@pytest.mark.parametrize("text", ["digraph a {", 'digraph a { n0 [label="x] }', "digraph a { n0 -> }", "graph a { }"])
def test_the_reader_refuses_what_graphviz_would(text: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        Reader(text)


def test_labels_say_what_a_step_does_and_when_an_arc_is_taken() -> None:
    picture = pictured(
        """
  - step: a
    desc: reads "all" pages
    tool: [{kind: http}, {kind: python}]
    next: {arcs: [{step: b, when: '{{ ctx.x == "1" }}'}, {step: a, when: "{{ ctx.again }}", label: again}]}
  - {step: b, tool: {kind: noop}, compensate: c}
"""
    )
    read = Reader(draw_dot(picture))
    assert read.nodes["n0"]["label"] == "a\nhttp → python"
    assert read.nodes["n0"]["tooltip"] == 'reads "all" pages'
    assert read.nodes["n2"]["style"] == "dashed"
    assert [attributes.get("label") for _, _, attributes in read.edges] == ['ctx.x == "1"', "again", "undo"]
    assert [attributes.get("style") for _, _, attributes in read.edges] == [None, "dashed", "dotted"]
    assert read.edges[1][2]["tooltip"] == "ctx.again"
