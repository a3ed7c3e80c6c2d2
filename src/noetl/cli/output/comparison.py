"""Two executions side by side as lines, for `noetl compare`.

Prints nothing. Tested in tests/acceptance/executions/test_compare_cli.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from noetl.cli.output.format import format_duration, format_time, shorten, to_json
from noetl.wire.screens.compare import Compared, ComparedHead, DecidedRow, SplitRow, StepSideRow

_VALUE = 200  # characters of a value


def comparison_lines(found: Compared) -> Iterator[str]:
    """Yield what differs: the decision first, then workload, text, steps and arcs."""
    yield f"this   {_head(found.this)}"
    yield f"other  {_head(found.other)}"
    yield ""
    yield from _split_lines(found)
    if found.workload:
        yield ""
        yield "Workload, from the other to this one:"
        for change in found.workload:
            yield f"  {change.path}: {_value(change.before)} → {_value(change.after)}"
    if found.playbook.differs:
        yield ""
        yield "Playbook, from the other to this one:"
        text = found.playbook.text
        yield from (f"  {line}" for line in (text or "the text of one is not known, or too long").splitlines())
    yield ""
    yield from _step_lines(found)
    yield from (f"… {count} more {name}" for name, count in found.left_out.items())


def _head(head: ComparedHead) -> str:
    version = "" if head.version is None else f" v{head.version}"
    took = format_duration(head.duration_ms)
    return f"{head.execution_id}  {head.status:<10} {format_time(head.started_at):<9} {took:>8}  {head.path}{version}"


def _split_lines(found: Compared) -> Iterator[str]:
    split = found.split
    if split is None:
        yield "Routers and gates decided alike as far as both went."
        if found.unaligned:
            yield f"Decided too often to compare one by one: {', '.join(found.unaligned)}."
        return
    what = "router" if split.this.gate is None else "gate"
    yield f"They part at the {what} of `{split.step}`, decision {split.number}:"
    yield from _side_lines("this", split.this, split)
    yield from _side_lines("other", split.other, split)


def _side_lines(name: str, side: DecidedRow, split: SplitRow) -> Iterator[str]:
    yield f"  {name:<6} event {side.seq}" + (f", after {side.event}" if side.event else "")
    if side.gate is not None:
        says = "admits" if side.gate.admits else "parks"
        yield f"    {says}{_because(side.gate.when, side.gate.read)}"
        yield from (f"    a condition cannot be evaluated: {error}" for error in side.gate.errors)
    for arc in side.arcs:
        mark = "→" if arc.taken else "✕"
        first = "  (only one took it)" if arc.arc == split.arc else ""
        yield f"    {mark} {arc.target}{_because(arc.when, arc.read)}{first}"


def _because(when: str | None, read: Mapping[str, Any] | None) -> str:
    values = ", ".join(f"{path} = {_value(value)}" for path, value in (read or {}).items())
    return (f": {when}" if when else "") + (f" ({values})" if values else "")


def _step_lines(found: Compared) -> Iterator[str]:
    rows = [("step", "this", "other", "")]
    rows += [(one.step, _side(one.this), _side(one.other), "differs" if one.differs else "") for one in found.steps]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    for row in rows:
        yield "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3]]).rstrip()


def _side(side: StepSideRow) -> str:
    if not side.state:
        return "not reached"
    parts = [side.state, f"×{side.runs}" if side.runs > 1 else ""]
    parts.append(f"{side.attempts} attempts" if side.attempts > side.runs else "")
    parts.append("" if side.duration_ms is None else format_duration(side.duration_ms))
    return " ".join(part for part in parts if part)


def _value(value: Any) -> str:
    return shorten(to_json(value), _VALUE)
