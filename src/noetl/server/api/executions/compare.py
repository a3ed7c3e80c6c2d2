"""Two executions side by side. Tested in tests/server/api/test_compare.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import convert, to_builtins

from noetl.engine.queries.history.compare import Decided, Split, compare, decided
from noetl.engine.queries.view import changed, shortened
from noetl.ports import Selection
from noetl.server.cache.catalog_lookup import text_of, version_at
from noetl.server.feeds.reader import known_id
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal, not_found
from noetl.server.processes.difference import difference
from noetl.wire.requests import TRIAL
from noetl.wire.screens.compare import (
    LAST_GOOD,
    ArcPairRow,
    Compared,
    ComparedHead,
    CompareQuery,
    DecidedRow,
    PlaybookDiff,
    SplitRow,
    StepPairRow,
)
from noetl.wire.screens.moments import MomentChange

_MOST: Final = 500  # changes of a workload
_MOST_ROWS: Final = 2_000  # steps, arcs, and lines of a diff, each
noun = Noun("compare", "Two executions side by side.")


@noun.route("GET", "/api/executions/{execution_id}/compare", "viewer", problems=(404,), of="execution")
async def compared(call: Call, execution_id: str, query: CompareQuery) -> Compared:
    """Compare an execution with another, or with the last good one of its path."""
    services = call.services
    row = await services.reader.row(execution_id)
    other_id = await _other(call, row, query.with_)
    other = row if other_id == execution_id else await services.reader.row(other_id)
    here, there = [(await services.tracks.get(one)).track for one in (execution_id, other_id)]
    found = compare(here, there)
    before, after = [dict((await services.reader.state(one)).workload) for one in (other_id, execution_id)]
    changes = list(changed(before, after))
    counts = {"workload": (len(changes), _MOST)}
    counts |= {"steps": (len(found.steps), _MOST_ROWS), "arcs": (len(found.arcs), _MOST_ROWS)}
    shown = services.mask.data(changes[:_MOST])
    return Compared(
        this=await _head(call, row),
        other=await _head(call, other),
        playbook=await _playbook(call, other, row),
        workload=[MomentChange(**{name: shortened(value) for name, value in one.items()}) for one in shown],
        steps=[convert(one, StepPairRow, from_attributes=True) for one in found.steps[:_MOST_ROWS]],
        arcs=[convert(one, ArcPairRow, from_attributes=True) for one in found.arcs[:_MOST_ROWS]],
        split=None if found.split is None else await _split(call, execution_id, other_id, found.split),
        unaligned=found.unaligned,
        left_out={name: count - most for name, (count, most) in counts.items() if count > most},
    )


async def _other(call: Call, row: Mapping[str, Any], given: str) -> str:
    """Return the id of the execution to compare with, one that the caller may read."""
    if given != LAST_GOOD:
        await call.find_execution(known_id(given))
        return given
    path, before = str(row.get("path", "")), str(row["execution_id"])
    good = Selection(status=("completed",), path=path, without=TRIAL, before=before, limit=1, within=call.reach)
    found = await call.services.store.executions(good)
    if not found:
        raise _no_good(path, before)
    return str(found[0]["execution_id"])


def _no_good(path: str, before: str) -> Refusal:
    detail = f"No execution of `{path}` before {before} has completed."
    return not_found(detail, "Name an execution: GET /api/executions lists them.")


async def _head(call: Call, row: Mapping[str, Any]) -> ComparedHead:
    path, playbook, started = str(row.get("path", "")), str(row.get("playbook", "")), int(row.get("started_at", 0))
    ended = row.get("ended_at")
    return ComparedHead(
        execution_id=str(row["execution_id"]),
        path=path,
        playbook=playbook,
        version=await version_at(call.services.store, path, playbook, started),
        status=str(row["status"]),
        started_at=started,
        ended_at=ended,
        duration_ms=max(0, (call.services.clock.now() if ended is None else int(ended)) - started),
        last_seq=int(row["last_seq"]),
        error=row.get("error"),
    )


async def _playbook(call: Call, before: Mapping[str, Any], after: Mapping[str, Any]) -> PlaybookDiff:
    hashes = [str(one.get("playbook", "")) for one in (before, after)]
    if hashes[0] == hashes[1]:
        return PlaybookDiff(differs=False, text=None, left_out=0)
    services = call.services
    paths = [str(one.get("path", "")) for one in (before, after)]
    old, new = [await text_of(services.store, *one) for one in zip(hashes, paths, strict=True)]
    names = (f"{paths[0]} {hashes[0][:12]}", f"{paths[1]} {hashes[1][:12]}")
    text = await difference(services.side, old, new, names, services.bounds.check_s) if old and new else None
    lines = (text or "").splitlines(keepends=True)
    shown = None if text is None else "".join(lines[:_MOST_ROWS])
    return PlaybookDiff(differs=True, text=shown, left_out=max(0, len(lines) - _MOST_ROWS))


async def _split(call: Call, this_id: str, other_id: str, split: Split) -> SplitRow | None:
    this, other = await _decided(call, this_id, split.seq), await _decided(call, other_id, split.other_seq)
    if this is None or other is None:
        return None
    return SplitRow(step=split.step, number=split.number, arc=split.arc, this=this, other=other)


async def _decided(call: Call, execution_id: str, seq: int) -> DecidedRow | None:
    """Return a decision with the values it read, masked before they are cut."""
    events = await call.services.store.read(execution_id, seq - 1, 1)
    if not events:  # the execution was removed meanwhile
        return None
    found: Decided = call.services.mask.data(decided(events[0]))
    made = to_builtins(found)
    for arc in made["arcs"]:
        arc["read"] = None if arc["read"] is None else {name: shortened(one) for name, one in arc["read"].items()}
    return convert(made, DecidedRow)
