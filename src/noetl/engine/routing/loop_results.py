"""Long loops: stored lists are read by range, results are stored on the way.

A loop whose results outgrow the inline limit sends itself a message; its decision asks for the results to be stored, and
they become parts of a manifest. So the state of a loop holds what is in flight, not what is done. Stores nothing itself.
Tested in tests/unit/engine/routing/test_loop_results.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.decision.needs_load import Missing, Resolved, found
from noetl.engine.decision.scope import Scope, render
from noetl.engine.state.execution import Execution, Loop, StepRun
from noetl.expr import TemplateError
from noetl.model.ids import message_digest
from noetl.model.manifest import is_list, manifest, within
from noetl.model.messages import Collect
from noetl.model.refs import KIND, SCHEME, expanded, is_manifest

INLINE_MAX_BYTES: Final = 64 * 1024
_NULL_BYTES: Final = 5  # of an item without a result: `null` and a comma
SPILL_BYTES: Final = 512 * 1024  # results of a running loop are stored above this size
FEW_NUMBERS: Final = 1_000  # a range of up to this many is written to the log as a list
MOST_NUMBERS: Final = 100_000_000  # longer ranges exceed the budget of an evaluation
_RANGE: Final = re.compile(r"\{\{-?\s*range\s*\((.*)\)\s*-?\}\}", re.DOTALL)
_PATH: Final = re.compile(r"\{\{-?\s*([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*)\s*-?\}\}")


def source(d: DecisionBuilder, template: Any, args: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the manifest that `loop.in` names; it is read by range, never loaded."""
    match = _PATH.fullmatch(template.strip()) if isinstance(template, str) else None
    if match is None or match[1] in args or match[1] in d.state.ctx:
        return None
    ended = d.state.ended.get(match[1])
    value = expanded(ended.result) if ended is not None else None
    for key in match[2].split(".")[1:]:
        if key == "data" and not (isinstance(value, Mapping) and "data" in value):
            continue
        value = value.get(key) if isinstance(value, Mapping) and not is_manifest(value) else None
    return value if is_manifest(value) and is_list(value) else None


def numbers(d: DecisionBuilder, template: Any, scope: Scope) -> Mapping[str, Any] | None:
    """Return the bounds of a long `range(…)`, which is not stored; else None."""
    match = _RANGE.fullmatch(template.strip()) if isinstance(template, str) else None
    if match is None:
        return None
    try:
        bounds = render(f"{{{{ [{match[1]}] }}}}", scope, d.calls)
    except TemplateError:
        return None
    if not isinstance(bounds, list) or not 1 <= len(bounds) <= 3 or any(type(one) is not int for one in bounds):
        return None
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    count = -((start - stop) // step) if step else 0
    return {"range": [start, stop, step], "total": count} if FEW_NUMBERS < count <= MOST_NUMBERS else None


def shelved(d: DecisionBuilder, run: StepRun, items: list[Any]) -> list[Any] | Mapping[str, Any]:
    """Return the list of a loop, or the manifest of a long one, which is stored."""
    if len(msgspec.json.encode(items)) <= inline_max(d, run):
        return items
    ref = f"{_place(d.state, run)}/items"
    if ref not in d.resolved:
        raise Missing(puts={ref: items})
    stored: Mapping[str, Any] | None = found(d.resolved, ref)
    return items if stored is None else stored


def item(loop: Loop, index: int, resolved: Resolved | None) -> Any:
    """Return one item of a loop's list; None for a stored list without `resolved`."""
    here = loop.here
    if here is not None:
        return here[index] if index < len(here) else None
    if resolved is None:
        return None
    nearby = within(loop.items, index, 1)
    (part,) = nearby["parts"]
    if part["ref"] not in resolved:
        raise Missing({"kind": KIND, **part})
    value = found(resolved, part["ref"])
    return value[index - nearby["first"]] if nearby["strategy"] == "concat" else value


def gather(d: DecisionBuilder, run: StepRun) -> None:
    """Ask for the results of a running loop to be stored once they are large."""
    loop = run.loop
    if loop is not None and loop.bytes > SPILL_BYTES:
        upto = loop.settled()
        if upto > loop.kept:
            _send(d, run, loop, upto)


def gathered(d: DecisionBuilder, run: StepRun) -> bool:
    """Return whether an ended loop's results are in place; else ask to store them."""
    loop = run.loop
    if loop is None or loop.kept == loop.count:
        return True
    if not loop.parts and loop.bytes + _NULL_BYTES * (loop.count - len(loop.results)) <= inline_max(d, run):
        return True
    _send(d, run, loop, loop.count, last=True)
    return False


def _send(d: DecisionBuilder, run: StepRun, loop: Loop, upto: int, *, last: bool = False) -> None:
    d.send(d.state.execution_id, message(d.state, run, loop, upto, last=last))


def message(state: Execution, run: StepRun, loop: Loop, upto: int, *, last: bool) -> Collect:
    """Return the message that stores the next results; its id is idempotent."""
    name = f"collect:{state.execution_id}:{run.run_id}:{loop.kept}{':last' if last else ''}"
    return Collect(name, run.run_id, upto, last)


def unsaid(state: Execution) -> Iterator[Collect]:
    """Yield the messages that ended loops still wait for: to store their last results."""
    for run in state.runs.values():
        loop = run.loop
        if loop is not None and loop.count and loop.ended == loop.count and (loop.drained or not loop.cursor):
            yield message(state, run, loop, loop.count, last=True)


def put_away(d: DecisionBuilder, run: StepRun, loop: Loop, upto: int) -> bool:
    """Store the results below an index; return whether a store exists."""
    if upto <= loop.kept:
        return True
    ref = f"{_place(d.state, run)}/results/{loop.kept}"
    if ref not in d.resolved:
        raise Missing(puts={ref: [loop.results.get(index) for index in range(loop.kept, upto)]})
    stored: Mapping[str, Any] | None = found(d.resolved, ref)
    if stored is None:
        return False
    payload = {
        "ref": f"{_place(d.state, run)}/results",
        "strategy": "concat",
        "start": loop.kept,
        "count": upto - loop.kept,
        "parts": stored["parts"],
        "store": stored.get("store"),
        "scope": "execution",
        "expires_at": None,
    }
    d.emit("result.manifest.updated", run.step, payload, run=run)
    return True


def replaced(
    d: DecisionBuilder, run: StepRun, parts: Sequence[Mapping[str, Any]], index: int, value: Any
) -> dict[str, Any]:
    """Return the index of a repaired item's stored part, and its replacement."""
    first, at = 0, 0
    while at < len(parts) - 1 and first + int(parts[at]["count"]) <= index:
        first, at = first + int(parts[at]["count"]), at + 1
    part = parts[at]
    if part["ref"] not in d.resolved:
        raise Missing({"kind": KIND, **part})
    values = list(found(d.resolved, part["ref"]))
    values[index - first] = value
    name = message_digest(f"{d.message.message_id}\n{part['ref']}")[:16]  # differs if the part changes meanwhile
    ref = f"{_place(d.state, run)}/results/{first}/repaired/{name}"
    if ref not in d.resolved:
        raise Missing(puts={ref: values})
    stored: Mapping[str, Any] | None = found(d.resolved, ref)
    return {"at": at, "parts": list(part if stored is None else stored["parts"])}


def results(state: Execution, run: StepRun, loop: Loop) -> Any:
    """Return the results of an ended loop: a list, or the manifest of its parts."""
    if loop.parts and loop.kept == loop.count:
        return manifest(f"{_place(state, run)}/results", loop.parts, store="db", scope="execution", expires_at=None)
    return loop.listed()


def inline_max(d: DecisionBuilder, run: StepRun) -> int:
    """Return how many bytes of a loop's list or results stay inline."""
    controls = d.plan.setting("result", d.plan.step(run.step))
    limit = controls.get("inline_max_bytes") if isinstance(controls, Mapping) else None
    return limit if isinstance(limit, int) and not isinstance(limit, bool) else INLINE_MAX_BYTES


def _place(state: Execution, run: StepRun) -> str:
    return f"{SCHEME}execution/{state.execution_id}/step/{quote(run.step, safe='')}/run/{run.number}"
