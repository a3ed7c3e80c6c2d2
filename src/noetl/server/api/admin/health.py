"""Liveness, readiness and metrics. Tested in tests/server/http/test_serve.py."""

from __future__ import annotations

from starlette.responses import Response

from noetl import __version__
from noetl.model.errors import StoreUnavailable
from noetl.server.http.endpoint import Call, Noun
from noetl.server.metrics.server_metrics import Readings
from noetl.server.problems import not_found
from noetl.server.services import Services
from noetl.wire.answers import Health

noun = Noun("health", "Liveness, readiness and metrics.")


@noun.route("GET", "/health", "open")
async def health(call: Call) -> Health:
    """Answer while the process is alive."""
    checks = {"clock": call.services.clock.report}
    return _health("ok", call, checks)


@noun.route("GET", "/ready", "open", problems=(503,))
async def ready(call: Call) -> Health:
    """Check that background tasks run, the store takes a write, no shutdown began."""
    if call.services.stopping.is_set():
        raise StoreUnavailable("The server is stopping.")
    if not call.services.control.is_whole:
        raise StoreUnavailable("A background task crashed; see the server log. Restart the server.")
    await call.services.probe.check()
    checks = {"store": "ok", "clock": call.services.clock.report}
    return _health("ready", call, checks)


def _health(status: str, call: Call, checks: dict[str, str]) -> Health:
    return Health(
        status=status,
        version=__version__,
        server=call.services.server_id,
        time=call.services.clock.now(),
        checks=checks,
    )


@noun.route("GET", "/metrics", "viewer", gives="text/plain", problems=(404,))
async def metrics(call: Call) -> Response:
    """Return the metrics in the text format of Prometheus."""
    if not call.services.metrics.is_on:
        raise not_found("This server exposes no metrics.", "Set NOETL_METRICS_ENABLED to true.")
    return Response(await metrics_text(call.services), media_type="text/plain; version=0.0.4")


async def metrics_text(services: Services) -> bytes:
    """Return the metrics of a server, with what its store holds now."""
    now = Readings(
        await services.team.depths(),
        services.control.sequencer.unanswered,
        services.registry.workers,
        await services.outbox.waiting(),
        await services.store.letter_counts(),
        {one.worker_id: one.seen_at for one in await services.team.workers() if one.status != "gone"},
        await services.team.parked(),
        services.streams.used,
        services.vault.rotations if services.vault is not None else 0,
        services.clock.now(),
    )
    return services.metrics.page(now)
