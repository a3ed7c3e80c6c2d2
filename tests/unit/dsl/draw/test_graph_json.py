"""Pictures as data: the shape that programs rely on."""

from __future__ import annotations

import json

from hypothesis import given

from noetl.dsl.draw import Picture, as_data, draw_json, picture
from noetl.dsl.draw.render.graph_json import SHAPE
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from tests.unit.dsl.draw.samples import HEAD, pictures


@given(pictures())
def test_the_data_has_exactly_the_described_fields(picture: Picture) -> None:
    data = json.loads(draw_json(picture))
    assert data == as_data(picture)
    assert list(data) == list(SHAPE["graph"])
    assert all(list(node) == list(SHAPE["node"]) for node in data["nodes"])
    assert all(list(edge) == list(SHAPE["edge"]) for edge in data["edges"])


@given(pictures())
def test_levels_name_every_node_once_and_edges_know_their_direction(picture: Picture) -> None:
    data = as_data(picture)
    names = [node["name"] for node in data["nodes"]]
    level = {name: number for number, row in enumerate(data["levels"]) for name in row}
    assert sorted(name for row in data["levels"] for name in row) == sorted(names)
    assert all(node["level"] == level[node["name"]] for node in data["nodes"])
    for edge in data["edges"]:
        assert edge["back"] == (level[edge["source"]] >= level[edge["target"]])


def test_every_field_is_described() -> None:
    for part in SHAPE.values():
        assert all(text.endswith(".") for text in part.values())


def test_steps_know_their_place_in_the_file() -> None:
    document = parse(
        HEAD
        + """workflow:
  - step: a
    loop: {in: "{{ workload.xs }}", iterator: x, spec: {mode: parallel}}
    tool: {get: {kind: http}}
    next:
      arcs:
        - {step: b, when: "{{ ctx.x }}", label: go, args: {n: 1}, set: {ctx.y: 2}}
"""
    )
    data = as_data(picture(normalize(document)), document.source)
    first, missing = data["nodes"]
    assert (first["line"], first["column"]) == (5, 11)
    assert (missing["line"], missing["column"], missing["known"]) == (None, None, False)
    assert first["tasks"] == [{"label": "get", "kind": "http"}]
    assert first["loop"] == {"iterator": "x", "over": "workload.xs", "mode": "parallel", "max_in_flight": None}
    assert (data["entry"], data["final"], data["levels"]) == ("a", None, [["a"], ["b"]])
    assert data["edges"] == [
        {
            "source": "a",
            "target": "b",
            "kind": "arc",
            "when": "ctx.x",
            "label": "go",
            "outcome": "any",
            "args": ["n"],
            "sets": ["ctx.y"],
            "back": False,
        }
    ]
