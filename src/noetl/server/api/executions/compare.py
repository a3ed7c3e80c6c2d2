"""Two executions side by side. Tested in tests/server/api/test_compare.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.server.feeds.reader import known_id
from noetl.server.http.endpoint import Call, Noun
from noetl.server.operations.comparisons import Comparer, Side, last_good
from noetl.server.problems import Refusal, not_found
from noetl.server.processes.difference import difference
from noetl.wire.screens.compare import LAST_GOOD, Compared, CompareQuery

noun = Noun("compare", "Two executions side by side.")


@noun.route("GET", "/api/executions/{execution_id}/compare", "viewer", problems=(404,), of="execution")
async def compared(call: Call, execution_id: str, query: CompareQuery) -> Compared:
    """Compare an execution with another, or with the last good one of its path."""
    services = call.services
    row = await services.reader.row(execution_id)
    other_id = await _other(call, row, query.with_)
    other = row if other_id == execution_id else await services.reader.row(other_id)

    async def differ(before: bytes, after: bytes, names: tuple[str, str]) -> str | None:
        return await difference(services.side, before, after, names, services.bounds.check_s)

    comparer = Comparer(services.store, services.mask, services.clock.now(), differ)
    return await comparer.compare(await _side(call, row), await _side(call, other))


async def _side(call: Call, row: Mapping[str, Any]) -> Side:
    execution_id = str(row["execution_id"])
    track = (await call.services.tracks.get(execution_id)).track
    return Side(row, track, (await call.services.reader.state(execution_id)).workload)


async def _other(call: Call, row: Mapping[str, Any], given: str) -> str:
    """Return the id of the execution to compare with, one that the caller may read."""
    if given != LAST_GOOD:
        await call.find_execution(known_id(given))
        return given
    found = await call.services.store.executions(last_good(row, call.reach))
    if not found:
        raise _no_good(str(row.get("path", "")), str(row["execution_id"]))
    return str(found[0]["execution_id"])


def _no_good(path: str, before: str) -> Refusal:
    detail = f"No execution of `{path}` before {before} has completed."
    return not_found(detail, "Name an execution: GET /api/executions lists them.")
