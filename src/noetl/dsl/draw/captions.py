"""The words that pictures put into boxes and beside lines. Tested in tests/unit/dsl/test_draw_mermaid.py."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.draw.picture import Vertex

_LONGEST = 48
_MOST_KINDS = 4


def counted(number: int, word: str) -> str:
    """Give a number with its word, in the plural where it has to be."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Cut a text that is too long for a picture; control characters become spaces."""
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def wrapped(text: str, longest: int = 30, most: int = 3) -> tuple[str, ...]:
    """Break a text into a few short lines between its words; what does not fit ends in an ellipsis."""
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
    """Give the kinds of a step in order; a kind that repeats is counted, a long pipeline is cut."""
    runs: list[tuple[str, int]] = []
    for kind in vertex.kinds:
        if runs and runs[-1][0] == kind:
            runs[-1] = (kind, runs[-1][1] + 1)
        else:
            runs.append((kind, 1))
    said = [kind if times == 1 else f"{kind} ×{times}" for kind, times in runs]
    if len(said) > _MOST_KINDS:
        said = [*said[: _MOST_KINDS - 1], f"… {said[-1]}"]
    return " → ".join(said)


def caption(vertex: Vertex) -> Iterator[str]:
    """Give the lines under the name of a step."""
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
