"""Checks of a server: reachable, ready, version, clock, token, workers.

Tested in tests/acceptance/servers/test_doctor_cli.py.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Final

from noetl import __version__
from noetl.cli.doctor.finding import Finding, ok, problem, warning
from noetl.cli.doctor.local_store import NTP, skew
from noetl.cli.runtime.target import Server
from noetl.model.errors import Denied, NoetlError

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.answers import WorkerRow

_NEW_TOKEN: Final = "Create a token with `noetl token create`, and set NOETL_TOKEN or NOETL_TOKEN_FILE."
_LATE_MS: Final = 30_000  # without a heartbeat


async def server(found: Server) -> AsyncIterator[Finding]:
    """Check a server as this machine sees it."""
    from noetl.client.api import Client

    try:
        client = Client(found.url, found.token)
    except NoetlError as error:
        yield problem("server", str(error), "Correct NOETL_SERVER_URL, `--server` or the context.")
        return
    async with client:
        asked = _now()
        try:
            health = await client.health()
        except Denied as error:
            yield problem("token", str(error), _NEW_TOKEN)
            return
        except NoetlError as error:
            yield problem(
                "server",
                str(error),
                "Check that it runs (`noetl serve`), its address, and what is between: DNS, firewall, proxy, certificate.",
            )
            return
        yield ok("server", f"{found.url} answers in {_now() - asked} ms")
        yield _versions("server", health.version)
        yield skew((asked + _now()) // 2 - health.time, f"the server {found.url}")
        if health.checks.get("clock", "ok") != "ok":
            yield problem("clock", f"On the server: {health.checks['clock']}", NTP)
        try:
            await client.ready()
            yield ok("ready", "the server can write to its store, and its background tasks run")
        except NoetlError as error:
            yield problem(
                "ready", f"The server is not ready: {error}", "Run `noetl doctor` on its machine; read its log."
            )
        async for one in _permitted(client, health.time):
            yield one


def _now() -> int:
    return time.time_ns() // 1_000_000


def _versions(what: str, version: str) -> Finding:
    if version == __version__:
        return ok("versions", f"the {what} has the same version, {version}")
    return warning(
        "versions",
        f"The {what} has version {version}, this machine has {__version__}.",
        "Install the same version on all machines; update servers before workers.",
    )


async def _permitted(client: Client, now: int) -> AsyncIterator[Finding]:
    """Check what a token is needed for."""
    try:
        me = await client.me()
    except Denied as error:
        yield problem("token", str(error), _NEW_TOKEN)
        return
    except NoetlError as error:
        yield problem("token", str(error), "Look into the log of the server.")
        return
    role = me.role if me.role and me.role != "none" else "roles in namespaces only"
    yield ok("token", f"the server knows you as {me.name or me.kind} ({role})")
    if me.role == "worker":
        return
    try:
        workers, queue = await client.workers(), await client.queue()
    except NoetlError as error:
        yield warning(
            "workers", f"This token cannot list workers: {error}", "Use a token of the role `viewer` or more."
        )
        return
    for one in _workers(workers, now):
        yield one
    for pool in queue.pools:
        name = pool.pool or "(default)"
        start = f"noetl worker start{f' --pool {pool.pool}' if pool.pool else ''}"
        if pool.queued and not pool.workers:
            yield problem(
                "workers", f"{pool.queued} queued in the pool {name}, which has no worker.", f"Run `{start}`."
            )
        for unmet in pool.unmet:
            tags = ",".join(unmet.tags)
            found = f"{unmet.queued} queued in the pool {name} need the tags {tags}, which no ready worker has."
            yield problem("workers", found, f"Run `{start} --tags {tags}`.")


def _workers(rows: list[WorkerRow], now: int) -> Iterator[Finding]:
    present = [row for row in rows if row.status != "gone"]
    for row in present:
        if now - row.seen_at > _LATE_MS:
            late = f"The worker {row.worker_id} on {row.host} sent no heartbeat for {(now - row.seen_at) // 1000} s."
            yield warning(
                "workers", late, "Check that it runs and reaches the server; run `noetl doctor` on its machine."
            )
        if row.version != __version__:
            yield _versions(f"worker {row.worker_id}", row.version)
    ready = sum(row.status == "ready" for row in present)
    if ready:
        yield ok("workers", f"{ready} ready")
    else:
        yield problem("workers", "No worker is ready, so no task runs.", "Run `noetl worker start`, or `noetl up`.")
