"""Long lists of loops: the list that a loop goes over is stored and read by range, results are put away as they gather.

A loop whose results outgrow what travels inline sends itself a message; its decision asks for the results to be put away,
and they become parts of a manifest. So the state of a loop holds what is under way, not what is done. Stores nothing
itself. Tested in tests/unit/engine/test_gather.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from noetl.engine.away import Missing, Resolved, found
from noetl.engine.decision import DecisionBuilder
from noetl.engine.names import Scope, render
from noetl.engine.state import Execution, Loop, StepRun
from noetl.expr import TemplateError
from noetl.model.ids import message_digest
from noetl.model.manifest import is_list, manifest, within
from noetl.model.messages import Collect
from noetl.model.refs import KIND, SCHEME, is_manifest

INLINE_MAX_BYTES: Final = 64 * 1024
_NULL_BYTES: Final = 5  # of an item without a result in a list, with its comma
SPILL_BYTES: Final = 512 * 1024  # results of a loop that runs are put away from here on
FEW_NUMBERS: Final = 1_000  # that stand in the log as they are
MOST_NUMBERS: Final = 100_000_000  # that a loop counts; beyond it, the budget of an evaluation says no
_RANGE: Final = re.compile(r"\{\{-?\s*range\s*\((.*)\)\s*-?\}\}", re.DOTALL)
_PATH: Final = re.compile(r"\{\{-?\s*([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*)\s*-?\}\}")


def source(d: DecisionBuilder, given: Any, args: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Give the manifest that `loop.in` names, where it names nothing else: it is read by range and never loaded."""
    written = _PATH.fullmatch(given.strip()) if isinstance(given, str) else None
    if written is None or written[1] in args or written[1] in d.state.ctx:
        return None
    ended = d.state.ended.get(written[1])
    value = ended.result if ended is not None else None
    for key in written[2].split(".")[1:]:
        if key == "data" and not (isinstance(value, Mapping) and "data" in value):
            continue
        value = value.get(key) if isinstance(value, Mapping) and not is_manifest(value) else None
    return value if is_manifest(value) and is_list(value) else None


def numbers(d: DecisionBuilder, given: Any, scope: Scope) -> Mapping[str, Any] | None:
    """Give the bounds of the numbers that `loop.in` counts, where there are many: they are neither written nor stored.

    Whatever else it says is evaluated as any template is; so is what goes wrong here.
    """
    written = _RANGE.fullmatch(given.strip()) if isinstance(given, str) else None
    if written is None:
        return None
    try:
        bounds = render(f"{{{{ [{written[1]}] }}}}", scope, d.calls)
    except TemplateError:
        return None
    if not isinstance(bounds, list) or not 1 <= len(bounds) <= 3 or any(type(one) is not int for one in bounds):
        return None
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    count = -((start - stop) // step) if step else 0
    return {"range": [start, stop, step], "total": count} if FEW_NUMBERS < count <= MOST_NUMBERS else None


def shelved(d: DecisionBuilder, run: StepRun, items: list[Any]) -> list[Any] | Mapping[str, Any]:
    """Give the list of a loop as it travels: itself, or the manifest under which a long one was put away."""
    if len(msgspec.json.encode(items)) <= inline_max(d, run):
        return items
    ref = f"{_place(d.state, run)}/items"
    if ref not in d.resolved:
        raise Missing(puts={ref: items})
    made: Mapping[str, Any] | None = found(d.resolved, ref)
    return items if made is None else made


def item(loop: Loop, index: int, resolved: Resolved | None) -> Any:
    """Give one item of a loop's list; null of a stored one where nothing can be loaded."""
    here = loop.here
    if here is not None:
        return here[index] if index < len(here) else None
    if resolved is None:
        return None
    near = within(loop.items, index, 1)
    (part,) = near["parts"]
    if part["ref"] not in resolved:
        raise Missing({"kind": KIND, **part})
    value = found(resolved, part["ref"])
    return value[index - near["first"]] if near["strategy"] == "concat" else value


def gather(d: DecisionBuilder, run: StepRun) -> None:
    """Have the results of a running loop put away once there are many."""
    loop = run.loop
    if loop is not None and loop.bytes > SPILL_BYTES:
        upto = loop.settled()
        if upto > loop.kept:
            _send(d, run, loop, upto)


def gathered(d: DecisionBuilder, run: StepRun) -> bool:
    """Tell whether the results of a loop that is over are where they belong; where not, have them put away first."""
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
    """Name the next part; whoever sends it twice sends the same message."""
    name = f"collect:{state.execution_id}:{run.run_id}:{loop.kept}{':last' if last else ''}"
    return Collect(name, run.run_id, upto, last)


def unsaid(state: Execution) -> Iterator[Collect]:
    """Give what loops that are over have told themselves and not heard yet: that their results are to be put away."""
    for run in state.runs.values():
        loop = run.loop
        if loop is not None and loop.count and loop.ended == loop.count and (loop.drained or not loop.cursor):
            yield message(state, run, loop, loop.count, last=True)


def put_away(d: DecisionBuilder, run: StepRun, loop: Loop, upto: int) -> bool:
    """Put the results below an index away; tells whether there is a place for them."""
    if upto <= loop.kept:
        return True
    ref = f"{_place(d.state, run)}/results/{loop.kept}"
    if ref not in d.resolved:
        raise Missing(puts={ref: [loop.results.get(index) for index in range(loop.kept, upto)]})
    made: Mapping[str, Any] | None = found(d.resolved, ref)
    if made is None:
        return False
    payload = {
        "ref": f"{_place(d.state, run)}/results",
        "strategy": "concat",
        "start": loop.kept,
        "count": upto - loop.kept,
        "parts": made["parts"],
        "store": made.get("store"),
        "scope": "execution",
        "expires_at": None,
    }
    d.emit("result.manifest.updated", run.step, payload, run=run)
    return True


def replaced(
    d: DecisionBuilder, run: StepRun, parts: Sequence[Mapping[str, Any]], index: int, value: Any
) -> dict[str, Any]:
    """Give the part of stored results that a repaired item is in anew: where it stands, and what takes its place."""
    first, at = 0, 0
    while at < len(parts) - 1 and first + int(parts[at]["count"]) <= index:
        first, at = first + int(parts[at]["count"]), at + 1
    part = parts[at]
    if part["ref"] not in d.resolved:
        raise Missing({"kind": KIND, **part})
    listed = list(found(d.resolved, part["ref"]))
    listed[index - first] = value
    name = message_digest(f"{d.message.message_id}\n{part['ref']}")[:16]  # another one where the part changes meanwhile
    ref = f"{_place(d.state, run)}/results/{first}/repaired/{name}"
    if ref not in d.resolved:
        raise Missing(puts={ref: listed})
    made: Mapping[str, Any] | None = found(d.resolved, ref)
    return {"at": at, "parts": list(part if made is None else made["parts"])}


def results(state: Execution, run: StepRun, loop: Loop) -> Any:
    """Give the results of a loop that is over: a list, or the manifest of its parts."""
    if loop.parts and loop.kept == loop.count:
        return manifest(f"{_place(state, run)}/results", loop.parts, store="db", scope="execution", expires_at=None)
    return loop.listed()


def inline_max(d: DecisionBuilder, run: StepRun) -> int:
    """Give how many bytes of a loop's list or results travel inline."""
    controls = d.plan.setting("result", d.plan.step(run.step))
    given = controls.get("inline_max_bytes") if isinstance(controls, Mapping) else None
    return given if isinstance(given, int) and not isinstance(given, bool) else INLINE_MAX_BYTES


def _place(state: Execution, run: StepRun) -> str:
    return f"{SCHEME}execution/{state.execution_id}/step/{quote(run.step, safe='')}/run/{run.number}"
