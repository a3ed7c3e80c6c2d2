"""Export a drawing as JSON for other programs.

Public interface: within one `version`, fields are only added. Tested in tests/unit/dsl/draw/test_graph_json.py.
"""

from __future__ import annotations

import json
from typing import Any

from noetl.dsl.draw.model.picture import Link, Picture, Vertex
from noetl.dsl.reading.nodes import Source

VERSION = 1
SHAPE: dict[str, dict[str, str]] = {
    "graph": {
        "version": "Version of this format, a number.",
        "name": "`metadata.name` of the playbook.",
        "path": "`metadata.path` of the playbook.",
        "entry": "Name of the step that runs first, or null.",
        "final": "Name of the step that runs once at the end, or null.",
        "nodes": "The steps in file order, followed by steps that are referenced but do not exist.",
        "edges": "The arcs in file order, and an edge to each compensating step.",
        "levels": "Step names by level, from the top of the drawing down. Every edge with `back: false` points down.",
        "cycles": "Groups of steps that can all reach each other.",
    },
    "node": {
        "name": "Name of the step; edges refer to it.",
        "description": "`desc` of the step.",
        "tasks": "The pipeline in order, a list of `{label, kind}`. Empty for a step that only routes.",
        "gate": "Conditions that admit a token, as written, without braces. Null where the step has no gate.",
        "loop": "`{iterator, over, mode, max_in_flight}`, as written. Null where the step has no loop.",
        "join": "Which branches the step waits for: `all`, `any`, `each` or a number. Null where no branches meet.",
        "mode": "Mode of the router: `exclusive` or `inclusive`.",
        "undoes": "Names of the steps that this one compensates.",
        "known": "False for a step that is referenced but does not exist.",
        "reachable": "Whether a token can reach the step.",
        "level": "Row of the step in the drawing, from 0.",
        "line": "Line of the step's name in the file. Null for an unknown step.",
        "column": "Column of the step's name in the file. Null for an unknown step.",
    },
    "edge": {
        "source": "Name of the step that the edge leaves.",
        "target": "Name of the step that the edge leads to.",
        "kind": "`arc`, or `compensate` for the edge to the step that undoes the source.",
        "when": "Condition as written, without braces, or null.",
        "label": "Label of the arc, or null.",
        "outcome": "Outcome after which the edge can be taken: `success`, `failure`, or `any` where the condition does not decide.",
        "args": "Names of the arguments for the next step.",
        "sets": "Targets that the arc writes, such as `ctx.total`.",
        "back": "Whether the edge leads back: to its own step or to one above.",
    },
}


def as_data(picture: Picture, source: Source | None = None) -> dict[str, Any]:
    """Return a drawing as plain data; with the source, steps have positions."""
    names = [vertex.name for vertex in picture.vertices]
    return {
        "version": VERSION,
        "name": picture.name,
        "path": picture.path,
        "entry": None if picture.entry is None else names[picture.entry],
        "final": None if picture.final is None else names[picture.final],
        "nodes": [_node(picture, number, vertex, source) for number, vertex in enumerate(picture.vertices)],
        "edges": [_edge(link, names, number in picture.ordered.back) for number, link in enumerate(picture.links)],
        "levels": [[names[number] for number in row] for row in picture.ordered.levels],
        "cycles": [[names[number] for number in group] for group in picture.cycles],
    }


def draw_json(picture: Picture, source: Source | None = None) -> str:
    """Write a drawing as JSON."""
    return json.dumps(as_data(picture, source), indent=2, ensure_ascii=False) + "\n"


def _node(picture: Picture, number: int, vertex: Vertex, source: Source | None) -> dict[str, Any]:
    position = source.position(vertex.offset) if source and vertex.offset is not None else None
    loop = vertex.loop
    return {
        "name": vertex.name,
        "description": vertex.desc,
        "tasks": [{"label": label, "kind": kind} for label, kind in vertex.tasks],
        "gate": None if vertex.gate is None else list(vertex.gate),
        "loop": loop
        and {
            "iterator": loop.iterator,
            "over": loop.over,
            "mode": loop.mode,
            "max_in_flight": loop.max_in_flight or None,
        },
        "join": vertex.join or None,
        "mode": vertex.mode,
        "undoes": list(vertex.undoes),
        "known": vertex.known,
        "reachable": vertex.reachable,
        "level": picture.ordered.level[number],
        "line": position.line if position else None,
        "column": position.column if position else None,
    }


def _edge(link: Link, names: list[str], back: bool) -> dict[str, Any]:
    return {
        "source": names[link.source],
        "target": names[link.target],
        "kind": link.kind,
        "when": link.when or None,
        "label": link.label or None,
        "outcome": link.outcome,
        "args": list(link.args),
        "sets": list(link.sets),
        "back": back,
    }
