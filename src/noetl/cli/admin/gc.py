"""`noetl admin gc`: removes stored results that may go, or only tells which those are.

Tested in tests/acceptance/test_admin.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import typer

from noetl.cli.common.store import as_json, call, existing, in_store, local_settings

if TYPE_CHECKING:
    from noetl.server.collector import Gone
    from noetl.wiring import Store

_CAUSES = {
    "expired": "`ttl` is over",
    "scope": "scope is over",
    "retention": "execution ended long ago",
    "removed": "execution was removed",
    "unlogged": "never reported",
}


def gc(store: str | None, dry_run: bool, json: bool) -> None:
    """Remove what may go; with `dry_run`, remove nothing."""

    async def job(opened: Store) -> list[Gone]:
        from noetl.wiring import open_collector

        return await open_collector(existing(local_settings(store)), opened).collect(dry_run=dry_run)

    gone = call(lambda: in_store(store, job))
    if json:
        rows = [{"ref": one.ref, "bytes": one.bytes, "cause": one.cause, "why": one.why} for one in gone]
        typer.echo(as_json({"dry_run": dry_run, "bytes": sum(one.bytes for one in gone), "results": rows}))
        return
    for cause, count in Counter(one.cause for one in gone).items():
        size = sum(one.bytes for one in gone if one.cause == cause)
        typer.echo(f"{_CAUSES[cause]}: {count} results, {size:,} bytes")
    typer.echo(f"{'would remove' if dry_run else 'removed'} {len(gone)} stored results")
