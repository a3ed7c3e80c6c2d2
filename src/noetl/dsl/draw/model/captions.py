"""Texts of boxes and lines. Tested in tests/unit/dsl/draw/test_mermaid.py."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import category, east_asian_width

from noetl.dsl.draw.model.picture import Vertex

_LONGEST = 48
_MOST_KINDS = 4


def counted(number: int, word: str) -> str:
    """Return a number with its noun, in the plural where needed."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Cut a text that is too long for a drawing; control characters become spaces."""
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def wrapped(text: str, longest: int = 30, most: int = 3) -> tuple[str, ...]:
    """Wrap a text into a few short lines; the rest is cut with an ellipsis."""
    lines: list[str] = []
    for word in shortened(text, longest * most).split():
        if lines and len(lines[-1]) + 1 + len(word) <= longest:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    kept = [shortened(line, longest) for line in lines[:most]]
    if len(lines) > most:
        kept[-1] = shortened(f"{kept[-1]} …", longest)
    return tuple(kept)


def pipeline(vertex: Vertex) -> str:
    """Return the kinds of a step; repeats are counted, a long pipeline is cut."""
    runs: list[tuple[str, int]] = []
    for kind in vertex.kinds:
        if runs and runs[-1][0] == kind:
            runs[-1] = (kind, runs[-1][1] + 1)
        else:
            runs.append((kind, 1))
    parts = [kind if times == 1 else f"{kind} ×{times}" for kind, times in runs]
    if len(parts) > _MOST_KINDS:
        parts = [*parts[: _MOST_KINDS - 1], f"… {parts[-1]}"]
    return " → ".join(parts)


def caption(vertex: Vertex) -> Iterator[str]:
    """Return the lines below the name of a step."""
    if not vertex.known:
        yield "not in the workflow"
        return
    yield shortened(pipeline(vertex)) if vertex.tasks else "routing"
    if vertex.loop:
        at_once = f" ×{vertex.loop.max_in_flight}" if vertex.loop.max_in_flight else ""
        yield shortened(f"{vertex.loop.mode} loop{at_once}")
    if vertex.gate is not None:
        yield "gate"
    if vertex.join:
        yield f"join {vertex.join}"


def cells(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    return sum(map(char_cells, text))


def char_cells(char: str) -> int:
    if category(char) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(char) in ("W", "F") else 1
