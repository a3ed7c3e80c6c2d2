"""Liveness, readiness and metrics. Tested in tests/server/http/test_serve.py."""

from __future__ import annotations

from starlette.responses import Response

from noetl import __version__
from noetl.model.errors import StoreUnavailable
from noetl.server.http.endpoint import Call, Noun
from noetl.wire.answers import Health

noun = Noun("health", "Liveness, readiness and metrics.")


@noun.route("GET", "/health", "open")
async def health(call: Call) -> Health:
    """Answer while the process is alive."""
    checks = {"clock": call.services.clock.report}
    return Health(status="ok", version=__version__, server=call.services.server_id, checks=checks)


@noun.route("GET", "/ready", "open", problems=(503,))
async def ready(call: Call) -> Health:
    """Check that background tasks run, the store takes a write, no shutdown began."""
    if call.services.stopping.is_set():
        raise StoreUnavailable("The server is stopping.")
    if not call.services.control.is_whole:
        raise StoreUnavailable("A background task crashed; see the server log. Restart the server.")
    await call.services.probe.check()
    checks = {"store": "ok", "clock": call.services.clock.report}
    return Health(status="ready", version=__version__, server=call.services.server_id, checks=checks)


@noun.route("GET", "/metrics", "viewer", gives="text/plain")
async def metrics(call: Call) -> Response:
    """Return the metrics in the text format of Prometheus."""
    services = call.services
    depths = await services.team.depths()
    outbox, unanswered = await services.outbox.waiting(), services.control.sequencer.unanswered
    letters = await services.store.letter_counts()
    text = services.metrics.page(depths, unanswered, services.registry.workers, outbox, letters)
    return Response(text, media_type="text/plain; version=0.0.4")
