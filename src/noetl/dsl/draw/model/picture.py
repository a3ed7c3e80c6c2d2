"""The model of a drawing: steps, the arcs between them, and their marks.

Steps that only an arc names are included, marked as unknown. Tested in tests/unit/dsl/draw/test_picture.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from msgspec import Struct

from noetl.dsl.analysis.net import build
from noetl.dsl.draw.model.ranks import Ordered, in_order, meeting_points
from noetl.dsl.reading.nodes import Node, Scalar
from noetl.dsl.tree.playbook import Loop, Mode, Playbook, Step, Value
from noetl.expr import TemplateError, compile_template
from noetl.model.events import names_of

LinkKind = Literal["arc", "compensate"]
Outcome = Literal["success", "failure", "any"]
_DONE = (*names_of("step.done"), *names_of("loop.done"))
_FAILED = names_of("step.failed")
_SAID = {
    f"event.name == '{name}'": said
    for names, said in ((_FAILED, "on failure"), (_DONE, "on success"))
    for name in names
}


class LoopMark(Struct, frozen=True):
    """The loop of a step, as written."""

    iterator: str
    over: str  # the list as written, or a description of the cursor
    mode: str
    max_in_flight: str = ""


class Vertex(Struct, frozen=True):
    """One step of the drawing."""

    name: str
    tasks: tuple[tuple[str, str], ...] = ()  # label and kind
    desc: str = ""
    gate: tuple[str, ...] | None = None  # conditions that admit a token; None where there is no gate
    loop: LoopMark | None = None
    join: str = ""  # which branches it waits for; "" where no branches meet
    mode: Mode = "exclusive"
    undoes: tuple[str, ...] = ()  # the steps that it compensates
    known: bool = True  # False: named by an arc, but not in the workflow
    reachable: bool = True
    offset: int | None = None  # of its name in the source

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind or "?" for _, kind in self.tasks)


class Link(Struct, frozen=True):
    """One arc of the drawing, or the link from a step to the one that undoes it."""

    source: int
    target: int
    kind: LinkKind = "arc"
    when: str = ""  # the condition as written, without braces; "" where there is none
    label: str = ""
    outcome: Outcome = "any"  # outcome after which it may be taken
    args: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()

    @property
    def outcome_words(self) -> str:
        """`on success` or `on failure` where the condition means exactly that, else empty."""
        return _SAID.get(self.when, "")

    @property
    def said(self) -> str:
        """The label of the link."""
        if self.kind == "compensate":
            return "undo"
        return self.label or self.outcome_words or self.when


class Picture(Struct, frozen=True, dict=True):
    """The model of a drawing; vertices and links refer to each other by number."""

    name: str
    path: str
    vertices: tuple[Vertex, ...]
    links: tuple[Link, ...]
    entry: int | None
    final: int | None
    cycles: tuple[tuple[int, ...], ...] = ()

    @property
    def heading(self) -> str:
        return " · ".join(filter(None, dict.fromkeys((self.name, self.path))))

    @cached_property
    def ordered(self) -> Ordered:
        """Levels from the entry down, the back links, and the reading order."""
        pairs = [(link.source, link.target) for link in self.links]
        return in_order(len(self.vertices), pairs, first=self.entry, last=self.final)

    @cached_property
    def out(self) -> tuple[tuple[int, ...], ...]:
        """The arcs that leave each step, by number."""
        arcs: list[list[int]] = [[] for _ in self.vertices]
        for number, link in enumerate(self.links):
            if link.kind == "arc":
                arcs[link.source].append(number)
        return tuple(map(tuple, arcs))

    def has_order(self, number: int) -> bool:
        """Return whether the order of a step's arcs matters."""
        outcomes = sorted(self.links[arc].outcome for arc in self.out[number])
        return len(outcomes) > 1 and self.vertices[number].mode == "exclusive" and outcomes != ["failure", "success"]


def picture(playbook: Playbook) -> Picture:
    """Build the model of a drawing from a playbook, valid or not."""
    net = build(playbook)
    index = dict(net.index)
    named = [arc.step for step in net.steps for arc in step.arcs]
    named += [step.compensate for step in net.steps if step.compensate]
    for name in named:
        index.setdefault(name, len(index))
    links = tuple(link for step in net.steps for link in _links(step, index))
    forks = [number for number, step in enumerate(net.steps) if step.router and step.router.mode == "inclusive"]
    meeting = meeting_points(len(index), [(link.source, link.target) for link in links if link.kind == "arc"], forks)
    live = net.live()
    undoes: dict[str, list[str]] = {}
    for step in net.steps:
        if step.compensate:
            undoes.setdefault(step.compensate, []).append(step.name)
    vertices = [
        _vertex(step, bool(live >> number & 1), number in meeting, tuple(undoes.get(step.name, ())))
        for number, step in enumerate(net.steps)
    ]
    vertices += [Vertex(name, known=False, undoes=tuple(undoes.get(name, ()))) for name in list(index)[len(vertices) :]]
    return Picture(playbook.name, playbook.path, tuple(vertices), links, net.entry, net.final, net.cycles())


def _vertex(step: Step, reachable: bool, meets: bool, undoes: tuple[str, ...]) -> Vertex:
    explicit = "join" in step.spec
    return Vertex(
        name=step.name,
        tasks=tuple((task.label, task.kind) for task in step.tasks),
        desc=step.desc,
        gate=None if step.admit is None else tuple(condition(rule.when) for rule in step.admit if rule.allow),
        loop=_loop(step.loop) if step.loop else None,
        join=str(step.join) if explicit or meets else "",
        mode=step.router.mode if step.router else "exclusive",
        undoes=undoes,
        reachable=reachable,
        offset=_offset(step.name_at),
    )


def _offset(node: Node | None) -> int | None:
    return None if node is None else node.start


def _loop(loop: Loop) -> LoopMark:
    at_once = loop.spec.get("max_in_flight")
    if loop.cursor is not None:
        kind = loop.cursor.get("kind")
        over = f"rows of a {kind.data} cursor" if kind else "rows of a cursor"
    else:
        over = condition(loop.items) or "?"
    return LoopMark(loop.iterator, over, str(loop.mode), condition(at_once) if at_once else "")


def _links(step: Step, index: dict[str, int]) -> Iterator[Link]:
    source = index[step.name]
    for arc in step.arcs:
        yield Link(
            source,
            index[arc.step],
            when=condition(arc.when) if arc.when is not None else "",
            label=arc.label or "",
            outcome=_outcome(arc.when),
            args=tuple(arc.args),
            sets=tuple(write.target for write in arc.sets),
        )
    if step.compensate:
        yield Link(source, index[step.compensate], "compensate", outcome="failure")


def condition(value: Value | None) -> str:
    """Return a value as written, on one line, without the braces around it."""
    if value is None:
        return ""
    text = value.at.text if isinstance(value.at, Scalar) else str(value.data)
    text = " ".join(text.split())
    if text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1:
        return text[2:-2].strip(" -")
    return text


def _outcome(when: Value | None) -> Outcome:
    if when is None:
        return "success"
    if not isinstance(when.data, str):
        return "any"
    try:
        template = compile_template(when.data)
    except TemplateError:
        return "any"
    if all(template.decide({"event.name": name, "outcome.status": "ok"}) is False for name in _DONE):
        return "failure"
    if all(template.decide({"event.name": name, "outcome.status": "error"}) is False for name in _FAILED):
        return "success"
    return "any"
