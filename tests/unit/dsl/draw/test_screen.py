"""Drawings for a screen: fixed nodes, lines that end at them, bounded work."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given

from noetl.dsl.draw import Picture
from noetl.dsl.draw.layout.layers import lay_out
from noetl.dsl.draw.model.picture import Link, Vertex
from noetl.dsl.draw.model.ranks import Pair, in_order, meeting_points
from noetl.dsl.draw.render.screen import as_screen
from tests.unit.dsl.draw.samples import pictured, pictures

STEPS = """\
  - step: fetch
    desc: read them
    tool: [{name: get, kind: http, url: 'http://x'}, {name: fit, kind: noop}, {name: more, kind: http, url: 'http://y'}]
    compensate: forget
    next:
      arcs:
        - {step: each, when: '{{ ctx.n > 0 }}', args: {a: 1}, set: {ctx.b: 2}}
        - {step: alarm, when: "{{ event.name == 'step.failed' }}"}
        - {step: fetch, when: '{{ ctx.again }}'}
  - step: each
    loop: {in: '{{ ctx.rows }}', iterator: row}
    tool: {kind: noop}
    next: {arcs: [{step: fetch, when: '{{ ctx.more }}'}]}
  - {step: alarm, tool: {kind: noop}}
  - {step: forget, tool: {kind: noop}}
"""


def test_nodes_have_a_fixed_size_and_edges_the_index_of_their_arc() -> None:
    data = as_screen(pictured(STEPS))
    nodes = {node["name"]: node for node in data["nodes"]}
    assert {name: (node["width"], node["height"]) for name, node in nodes.items()} == {
        "fetch": (200, 48),
        "each": (200, 64),
        "alarm": (200, 48),
        "forget": (200, 48),
    }
    assert (nodes["fetch"]["kinds"], nodes["fetch"]["description"]) == (["http", "noop"], "read them")
    assert [(edge["source"], edge["target"], edge["arc"], edge["kind"]) for edge in data["edges"]] == [
        ("fetch", "each", 0, "next"),
        ("fetch", "alarm", 1, "failure"),
        ("fetch", "fetch", 2, "back"),
        ("fetch", "forget", -1, "compensation"),
        ("each", "fetch", 0, "back"),
    ]
    first = data["edges"][0]
    assert (first["when"], first["args"], first["set"], data["entry"]) == ("ctx.n > 0", True, True, "fetch")


@given(pictures())
def test_lines_run_from_the_edge_of_their_source_to_that_of_their_target(picture: Picture) -> None:
    data = as_screen(picture)
    nodes = {node["name"]: node for node in data["nodes"]}
    for edge in data["edges"]:
        for (x, y), name in zip((edge["points"][0], edge["points"][-1]), (edge["source"], edge["target"]), strict=True):
            node = nodes[name]
            assert node["x"] - 0.1 <= x <= node["x"] + node["width"] + 0.1
            assert node["y"] - 0.1 <= y <= node["y"] + node["height"] + 0.1
        assert all(0 <= x <= data["width"] and 0 <= y <= data["height"] for x, y in edge["points"])


@given(pictures())
def test_no_two_nodes_overlap(picture: Picture) -> None:
    nodes = as_screen(picture)["nodes"]
    for number, one in enumerate(nodes):
        for other in nodes[number + 1 :]:
            beside = abs(one["x"] - other["x"]) >= 200 or one["y"] + one["height"] < other["y"]
            assert beside or other["y"] + other["height"] < one["y"]


def _net(kind: str, count: int) -> list[Pair]:
    chance = random.Random(7)
    if kind == "chain":
        return [(step, target) for step in range(count - 2) for target in (step + 1, count - 1)]
    if kind == "forward":
        return [(step, chance.randrange(step + 1, count)) for step in range(count - 1) for _ in range(3)]
    return [(step, chance.randrange(count)) for step in range(count) for _ in range(2)]


@pytest.mark.parametrize("kind", ["chain", "forward", "any"])
@pytest.mark.parametrize("count", [233, 5_000])
def test_a_large_net_has_a_bounded_number_of_cells(kind: str, count: int) -> None:
    links = _net(kind, count)
    layers = lay_out(in_order(count, links, 0), links, [None] * len(links))
    assert len(layers.row) <= count + len(links) + 10_000
    assert sum(len(chain.cells) for chain in layers.chains.values()) <= 100_000 + 4 * len(links)
    assert sorted(cell for row in layers.rows for cell in row) == list(range(len(layers.row)))
    for chain in layers.chains.values():
        assert all(pair in layers.links for pair in pairwise(chain.cells))


def test_a_large_net_is_drawn_whole() -> None:
    count = 600
    links = _net("chain", count)
    vertices = tuple(Vertex(f"s{number}") for number in range(count))
    data = as_screen(Picture("n", "p", vertices, tuple(Link(*pair) for pair in links), 0, None))
    assert (len(data["nodes"]), len(data["edges"])) == (count, len(links))
    assert all(len(edge["points"]) >= 2 for edge in data["edges"])


def test_branches_of_many_forks_that_meet_at_once_are_found() -> None:
    count = 3_000
    links = [
        pair
        for at in range(0, count - 3, 3)
        for pair in ((at, at + 1), (at, at + 2), (at + 1, at + 3), (at + 2, at + 3))
    ]
    found = meeting_points(count, links, range(0, count - 3, 3))
    assert found == frozenset(range(3, count, 3))
