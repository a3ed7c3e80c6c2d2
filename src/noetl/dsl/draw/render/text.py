"""Draw a playbook as text for a terminal: one line per step and per arc.

A legend explains the marks in use; lines are cut to the width. Tested in tests/unit/dsl/draw/test_text.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from unicodedata import category

from noetl.dsl.draw.model.captions import cells, char_cells, counted
from noetl.dsl.draw.model.picture import Link, Picture, Vertex

_ENTRY, _FINAL, _END, _UNKNOWN, _UNREACHABLE, _UNDO = "▶", "■", "●", "?", "✗", "↶"
_LEGEND = {
    _ENTRY: "entry",
    _END: "end of a branch",
    _FINAL: "runs once at the end",
    _UNDO: "undoes another step",
    _UNREACHABLE: "no token can come here",
    _UNKNOWN: "not in the workflow",
    "↺": "leads back",
}
_WIDEST_NAME = 32


def draw_text(picture: Picture, width: int | None = None) -> str:
    """Return a drawing as text, cut to `width` columns; None: not cut."""
    lines = [*_head(picture), *_steps(picture)]
    used = [mark for mark in _LEGEND if any(mark in (line[:1], line.lstrip("├└─ ")[:1]) for line in lines)]
    if used:
        lines += ["", "   ".join(f"{mark} {_LEGEND[mark]}" for mark in used)]
    return "".join(f"{_cut(line, width)}\n" for line in lines)


def _head(picture: Picture) -> Iterator[str]:
    yield _safe(picture.heading) or "playbook"
    arcs = sum(link.kind == "arc" for link in picture.links)
    known = sum(vertex.known for vertex in picture.vertices)
    counts = [counted(known, "step"), counted(arcs, "arc")]
    counts += [counted(len(picture.cycles), "cycle")] if picture.cycles else []
    yield ", ".join(counts)


def _steps(picture: Picture) -> Iterator[str]:
    names = [min(cells(vertex.name), _WIDEST_NAME) for vertex in picture.vertices]
    column = max(names, default=0)
    before = 0
    for number in picture.ordered.reading:
        lines = list(_step(picture, number, column))
        if before != 1 or len(lines) != 1:
            yield ""
        yield from lines
        before = len(lines)


def _step(picture: Picture, number: int, column: int) -> Iterator[str]:
    vertex = picture.vertices[number]
    does = " → ".join(vertex.kinds) if vertex.tasks else "routing only" if vertex.known else ""
    notes = ", ".join(filter(None, [does, *_notes(picture, number, vertex)]))
    yield f"{_mark(picture, number, vertex)} {_padded(_safe(vertex.name), column + 4)}  {_safe(notes)}".rstrip()
    if vertex.loop:
        yield f"  │ for each {_safe(vertex.loop.iterator)} in {_safe(vertex.loop.over)}"
    if vertex.gate is not None:
        yield f"  │ admitted when {_safe(' or '.join(text or 'nothing else matches' for text in vertex.gate)) or 'never'}"
    yield from _arcs(picture, number, vertex, column)


def _mark(picture: Picture, number: int, vertex: Vertex) -> str:
    if not vertex.known:
        return _UNKNOWN
    if number == picture.entry:
        return _ENTRY
    if number == picture.final:
        return _FINAL
    if not vertex.reachable:
        return _UNREACHABLE
    if vertex.undoes:
        return _UNDO
    return _END if not picture.out[number] else " "


def _notes(picture: Picture, number: int, vertex: Vertex) -> Iterator[str]:
    if vertex.loop:
        at_once = f", {vertex.loop.max_in_flight} at once" if vertex.loop.max_in_flight else ""
        yield f"{vertex.loop.mode} loop{at_once}"
    if vertex.gate is not None:
        yield "gate"
    if vertex.join:
        yield f"join {vertex.join}"
    if vertex.undoes:
        yield f"undoes {', '.join(vertex.undoes)}"
    compensations = [link for link in picture.links if link.kind == "compensate" and link.source == number]
    if compensations:
        yield f"undone by {picture.vertices[compensations[0].target].name}"


def _arcs(picture: Picture, number: int, vertex: Vertex, column: int) -> Iterator[str]:
    arcs = picture.out[number]
    free = vertex.mode == "inclusive" and not any(picture.links[index].when for index in arcs)
    if vertex.mode == "inclusive" and len(arcs) > 1:
        yield f"  │ {'all of them at once' if free else 'all that match'}"
    elif picture.has_order(number):
        yield "  │ the first that matches"
    for place, index in enumerate(arcs):
        link = picture.links[index]
        arrow = "↺" if index in picture.ordered.back else "→"
        target = _safe(picture.vertices[link.target].name)
        branch = "└─" if place == len(arcs) - 1 else "├─"
        yield f"  {branch}{arrow} {_padded(target, column)}  {_said(link, free or len(arcs) == 1)}".rstrip()


def _said(link: Link, needs_no_words: bool) -> str:
    parts = [f"[{_safe(link.label)}]"] if link.label else []
    if link.when:
        parts.append(link.outcome_words or f"when {_safe(link.when)}")
    elif not needs_no_words:
        parts.append("on success")
    return " ".join(parts)


def _padded(text: str, column: int) -> str:
    return text + " " * max(0, column - cells(text))


def _safe(text: str) -> str:
    return "".join("�" if category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") else char for char in text)


def _cut(line: str, width: int | None) -> str:
    if width is None or cells(line) <= width:
        return line
    return "".join(_fitting(line, max(width - 1, 1))) + "…"


def _fitting(line: str, width: int) -> Iterable[str]:
    used = 0
    for char in line:
        used += char_cells(char)
        if used > width:
            return
        yield char
