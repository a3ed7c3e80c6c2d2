"""Lay a drawing out for a screen: nodes of fixed size, arcs as points.

The size of a node does not depend on its text, so a screen can write anything into it; conditions take no room. Tested in
tests/unit/dsl/draw/test_screen.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.dsl.draw.layout.boxes import Box
from noetl.dsl.draw.layout.plan import LOOP_BULGE, LOOP_RISE, Plan, make_plan
from noetl.dsl.draw.model.picture import Picture, Vertex
from noetl.dsl.draw.render.graph_json import as_data
from noetl.dsl.reading.nodes import Position

NODE_WIDTH, NODE_HEIGHT, LOOP_HEIGHT = 200.0, 48.0, 64.0
COMPENSATION = -1  # the number of the edge to a compensating step, which is no arc


def as_screen(picture: Picture, positions: Mapping[str, Position] | None = None) -> dict[str, Any]:
    """Return a drawing with coordinates; x and y are the top left corner of a node."""
    boxes = tuple(map(_box, picture.vertices))
    plan = make_plan(picture, boxes=boxes, labels=((),) * len(picture.links))
    data = as_data(picture)
    nodes = [_node(plan, number, node, positions or {}) for number, node in enumerate(data["nodes"])]
    arcs = {number: place for out in picture.out for place, number in enumerate(out)}
    edges = [_edge(plan, number, edge, arcs.get(number, COMPENSATION)) for number, edge in enumerate(data["edges"])]
    kept = {key: data[key] for key in ("name", "path", "entry", "final")}
    return {**kept, "width": _round(plan.width), "height": _round(plan.height), "nodes": nodes, "edges": edges}


def _box(vertex: Vertex) -> Box:
    return Box(vertex.name, "", (), NODE_WIDTH, LOOP_HEIGHT if vertex.loop else NODE_HEIGHT)


def _node(plan: Plan, number: int, node: dict[str, Any], positions: Mapping[str, Position]) -> dict[str, Any]:
    box, gate = plan.boxes[number], node["gate"]
    position = positions.get(node["name"])
    return {
        **node,
        "x": _round(plan.x[number] - box.width / 2),
        "y": _round(plan.top(number)),
        "width": box.width,
        "height": box.height,
        "kinds": list(dict.fromkeys(plan.picture.vertices[number].kinds)),
        "gate": None if gate is None else " or ".join(gate),
        "line": position.line if position else None,
        "column": position.column if position else None,
    }


def _edge(plan: Plan, number: int, edge: dict[str, Any], arc: int) -> dict[str, Any]:
    if arc == COMPENSATION:
        kind = "compensation"
    elif edge["outcome"] == "failure":
        kind = "failure"
    else:
        kind = "back" if edge["back"] else "next"
    return {
        **{key: edge[key] for key in ("source", "target", "outcome", "back")},
        "arc": arc,
        "kind": kind,
        "when": edge["when"] or "",
        "label": edge["label"] or "",
        "args": bool(edge["args"]),
        "set": bool(edge["sets"]),
        "points": _points(plan, number),
    }


def _points(plan: Plan, number: int) -> list[tuple[float, float]]:
    """Return the corners of a line, from its source to its target."""
    if number not in plan.layers.chains:
        box = plan.picture.links[number].source
        right, middle = plan.x[box] + plan.boxes[box].width / 2, (plan.top(box) + plan.bottom(box)) / 2
        corners = ((0.0, -LOOP_RISE), (LOOP_BULGE, -LOOP_RISE), (LOOP_BULGE, LOOP_RISE), (0.0, LOOP_RISE))
        return [(_round(right + x), _round(middle + y)) for x, y in corners]
    passed = [point for passage in plan.passages(number) if passage for point in passage]
    points: list[tuple[float, float]] = []
    for point in dict.fromkeys((_round(x), _round(y)) for x, y in passed):
        if len(points) > 1 and points[-2][0] == points[-1][0] == point[0]:
            points.pop()  # it lies on a straight line down
        points.append(point)
    return points[::-1] if number in plan.picture.ordered.back else points


def _round(value: float) -> float:
    return round(value, 1)
