"""`noetl queue`: show what waits, by pool, by playbook and by limit.

Tested in tests/acceptance/servers/test_queue_cli.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import format_duration, to_json
from noetl.cli.runtime.store import local_settings, read_history
from noetl.cli.runtime.terminal import echo, one_line

if TYPE_CHECKING:
    from noetl.ports import History
    from noetl.wiring.embedded import Store

_Rows = list[Mapping[str, Any]]


def command(json: AsJson = False, store: Place = None) -> None:
    """Show queues and pools: waiting work, its playbooks, and limits.

    `noetl explain ID` shows where one execution stands.
    """

    async def job(history: History) -> dict[str, _Rows]:
        from msgspec import to_builtins

        from noetl.server.workers.presence import all_limits, by_playbook, pools_of
        from noetl.wiring.embedded import open_team

        if hasattr(history, "client"):  # a server
            found = to_builtins(await history.client.queue())
            return {name: found[name] for name in ("pools", "flows", "limits")}
        team = open_team(cast("Store", history))
        pools = pools_of(await team.workers(), await team.depths())
        flows = by_playbook(await team.flows())
        limits = all_limits(await team.limits(), await team.work_limits(), local_settings(store).work_limits)
        return {"pools": cast("_Rows", pools), "flows": cast("_Rows", flows), "limits": cast("_Rows", limits)}

    found = read_history(store, job)
    if json:
        echo(to_json(found))
        return
    from noetl.clock import SteadyClock

    lines = list(_lines(found, SteadyClock().now()))
    for line in lines or ["nothing waits"]:
        echo(one_line(line))


def _lines(found: Mapping[str, _Rows], now: int) -> Iterator[str]:
    for row in found["pools"]:
        waiting = f"{row['queued']} queued{_age(row, now)}, {row['leased']} leased"
        dead = f", {row['dead']} dead" if row["dead"] else ""
        kept = f", {row['kept']} of them for playbooks that have nothing running" if row["kept"] else ""
        workers = f"{row['workers']} workers with {row['capacity']} places{kept}"
        yield f"pool {row['pool'] or '(default)'}: {waiting}{dead}; {workers}"
        for unmet in row["unmet"]:
            tags = ",".join(unmet["tags"])
            start = f"noetl worker start{' --pool ' + row['pool'] if row['pool'] else ''} --tags {tags}"
            yield f"  {unmet['queued']} of them need the tags {tags}, which no ready worker has: {start}"
        for flow in found["flows"]:
            if flow["pool"] == row["pool"]:
                priority = f" at priority {flow['priority']}" if flow["priority"] else ""
                yield f"  {flow['flow'] or '(no playbook)'}: {flow['queued']} queued{_age(flow, now)}{priority}"
    for row in found["limits"]:
        group = f"{row['group']}(default)" if row.get("of") == "work" and row["group"] == "pool " else row["group"]
        most = f" of {row['limit']}" if row.get("limit") is not None else ""
        yield f"limit {group}: {row['running']}{most} running, {row['waiting']} waiting{_age(row, now)}"


def _age(row: Mapping[str, Any], now: int) -> str:
    oldest = row.get("oldest")
    return "" if oldest is None else f" (the oldest for {format_duration(max(0, now - oldest))})"
