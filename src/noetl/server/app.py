"""The HTTP application: every route of the API behind one guard.

Made of Starlette's routing and msgspec alone. Starting and stopping its parts is `running`. Tested in tests/server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from noetl.server.api import endpoints
from noetl.server.attendance import strike_off
from noetl.server.collector import Collector
from noetl.server.dead_letters import log_letters
from noetl.server.guard import Guard
from noetl.server.problems import Refusal, answer
from noetl.server.relay import Relay
from noetl.server.services import Services
from noetl.server.sessions import session_route

_WORDS = {404: "no-such-route", 405: "method"}
_FIXES = {404: "GET /docs lists the routes.", 405: "GET /docs lists the routes and their methods."}


def app(services: Services) -> Guard:
    """Make the application of a server."""
    behind = Starlette(routes=routes(services), exception_handlers={HTTPException: _refused})
    behind.router.redirect_slashes = False  # one spelling per route: nothing is opened by another
    return Guard(behind, services, endpoints())


def routes(services: Services) -> list[BaseRoute]:
    """Give all routes of a server."""
    return [session_route(services), *(endpoint.route(services) for endpoint in endpoints())]


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = f"{request.method} {request.url.path} is no route of this server"
    headers = dict(getattr(error, "headers", None) or {})
    refusal = Refusal(status, _WORDS.get(status, "refused"), detail, fix=_FIXES.get(status), headers=headers)
    return answer(refusal, request.url.path)


@asynccontextmanager
async def running(
    services: Services, collector: Collector | None = None, relay: Relay | None = None
) -> AsyncIterator[None]:
    """Run what the routes need beside the control plane; at the end, let streams and sessions go."""
    services.control.sequencer.listeners.on_commits.append(services.metrics.committed)
    services.control.sequencer.listeners.on_letters.append(log_letters)
    sweeping = asyncio.create_task(services.handouts.run(), name="noetl-handouts")
    answering = asyncio.create_task(_answer_claims(services))
    beside = [asyncio.create_task(strike_off(services.team, services.clock), name="noetl-strike-off")]
    if collector is not None:
        beside.append(asyncio.create_task(collector.run(), name="noetl-collector"))
    if relay is not None:
        relay.on_attempt.append(services.metrics.sent)
        beside.append(asyncio.create_task(relay.run(), name="noetl-relay"))
    try:
        yield
    finally:
        services.stopping.set()
        for task in (sweeping, *beside):
            task.cancel()
        await asyncio.gather(sweeping, answering, *beside, return_exceptions=True)
        await services.handouts.close()


async def _answer_claims(services: Services) -> None:
    """Let no request for work, and none that waits for an end, hold up the end of the server."""
    await services.stopping.wait()
    services.handouts.answer_claims()
    services.control.endings.let_go()
