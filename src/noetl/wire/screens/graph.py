"""Answer with the graph of a playbook, laid out for a screen.

Fields are added, never renamed or removed. Tested in tests/server/api/test_graph.py.
"""

from __future__ import annotations

from typing import Literal

from noetl.wire.answers import Answer


class GraphTask(Answer, frozen=True):
    """A task of a step's pipeline."""

    label: str
    kind: str


class GraphLoop(Answer, frozen=True):
    """The loop of a step, as written."""

    iterator: str
    over: str
    mode: str
    max_in_flight: str | None = None


class GraphNode(Answer, frozen=True):
    """A step; `x` and `y` are its top left corner."""

    name: str
    x: float
    y: float
    width: float
    height: float
    description: str
    kinds: list[str]  # of its tasks, each once
    tasks: list[GraphTask]
    gate: str | None  # conditions that admit a token, without braces; null: it has no gate
    loop: GraphLoop | None
    join: str | None  # which branches it waits for: all, any, each or a number; null: no branches meet
    mode: str  # of its router: exclusive or inclusive
    undoes: list[str]  # the steps that it compensates
    known: bool  # false: an arc names it, but it does not exist
    reachable: bool
    level: int  # row, from 0
    line: int | None = None  # of its name in the text; null: the text is not in the catalog
    column: int | None = None


class GraphEdge(Answer, frozen=True):
    """An arc, or the edge to a compensating step."""

    source: str
    target: str
    arc: int  # index in `next` of its source, as in `next.evaluated`; -1 for a compensation
    kind: Literal["next", "failure", "back", "compensation"]
    when: str  # condition as written, without braces; empty: none
    label: str
    outcome: Literal["success", "failure", "any"]  # outcome after which it can be taken
    back: bool  # it leads to its own step or to one above
    args: bool
    set: bool
    points: list[tuple[float, float]]  # corners of its line, from the source to the target


class Graph(Answer, frozen=True):
    """The graph of a playbook with coordinates in pixels."""

    hash: str
    path: str
    name: str
    entry: str | None
    final: str | None
    width: float
    height: float
    nodes: list[GraphNode]  # in file order
    edges: list[GraphEdge]
