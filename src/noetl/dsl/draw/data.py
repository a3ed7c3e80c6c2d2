"""Gives a picture as plain data for programs that draw or examine it themselves.

The shape is an interface: fields are added, never renamed or removed while `version` stays. `SHAPE` describes every field
and is the source of its reference page. Tested in tests/unit/dsl/test_draw_data.py.
"""

from __future__ import annotations

import json
from typing import Any

from noetl.dsl.draw.picture import Link, Picture, Vertex
from noetl.dsl.nodes import Source

VERSION = 1
SHAPE: dict[str, dict[str, str]] = {
    "graph": {
        "version": "The version of this shape, a number.",
        "name": "`metadata.name` of the playbook.",
        "path": "`metadata.path` of the playbook.",
        "entry": "The name of the step that runs first; null where there is none.",
        "final": "The name of the step that runs once at the end; null where there is none.",
        "nodes": "The steps in file order, then the steps that are named and do not exist.",
        "edges": "The arcs in file order, and the ways to the steps that undo others.",
        "levels": "Names of the steps from the top of the picture down: every edge that does not lead back goes downwards.",
        "cycles": "Groups of steps that can all reach each other.",
    },
    "node": {
        "name": "The step's name; edges refer to it.",
        "description": "`desc` of the step.",
        "tasks": "The pipeline in order: a list of `{label, kind}`; empty for a step that only routes.",
        "gate": "The conditions that let a token in, as written, without braces; null where there is no gate.",
        "loop": "`{iterator, over, mode, max_in_flight}`, as written; null where the step does not repeat.",
        "join": "Which siblings the step waits for (`all`, `any`, `each` or a number); null where no branches meet.",
        "mode": "How its arcs are tried: `exclusive` or `inclusive`.",
        "undoes": "The steps that this one compensates.",
        "known": "false for a step that is named and does not exist.",
        "reachable": "Whether a token can ever come here.",
        "level": "Its row in the picture, from 0.",
        "line": "The line of its name in the file; null for an unknown step.",
        "column": "The column of its name in the file; null for an unknown step.",
    },
    "edge": {
        "source": "The name of the step it leaves.",
        "target": "The name of the step it leads to.",
        "kind": "`arc`, or `compensate` for the way to the step that undoes the source.",
        "when": "The condition as written, without braces; null where there is none.",
        "label": "The arc's label; null where it has none.",
        "outcome": "After what it can be taken: `success`, `failure`, or `any` where the condition does not settle it.",
        "args": "The names that it binds for the next step.",
        "sets": "The targets that it writes, such as `ctx.total`.",
        "back": "Whether it leads back up: to its own step or to one above.",
    },
}


def as_data(picture: Picture, source: Source | None = None) -> dict[str, Any]:
    """Give a picture as plain data; with the source, steps know their place in it."""
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
    """Write a picture as JSON."""
    return json.dumps(as_data(picture, source), indent=2, ensure_ascii=False) + "\n"


def _node(picture: Picture, number: int, vertex: Vertex, source: Source | None) -> dict[str, Any]:
    place = source.position(vertex.offset) if source and vertex.offset is not None else None
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
        "line": place.line if place else None,
        "column": place.column if place else None,
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
