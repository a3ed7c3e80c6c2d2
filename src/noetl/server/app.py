"""The HTTP application: one route table, one guard. Tested in tests/server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from noetl.masking.values import in_process
from noetl.server.api import endpoints
from noetl.server.background.audit_links import link_audit
from noetl.server.background.log_export import LogExport
from noetl.server.background.outbox_relay import OutboxRelay
from noetl.server.background.pruning import Pruning
from noetl.server.background.reactions.ended_triggers import EndedTriggers
from noetl.server.background.reactions.notifications import Notifications
from noetl.server.background.result_gc import ResultGC
from noetl.server.background.schedules import Scheduler
from noetl.server.background.subscriptions.poller import SubscriptionPoller
from noetl.server.http.endpoint import JSON, Endpoint
from noetl.server.http.guard import Guard
from noetl.server.http.worker_socket import PATH, session_app
from noetl.server.problems import Refusal, problem_response
from noetl.server.screen import Screen
from noetl.server.services import Services
from noetl.server.workers.presence import strike_off

_WEBSOCKET = "websocket"  # stands for the method of a WebSocket in the route table
_PARAMETER = "{}"
_APP = "/"  # key of a route in its node; no path segment holds a slash
_LEAST_ZIPPED = 2_000  # bytes; a smaller answer fits two packets as it is
_LEVEL = 1  # level 9 takes twice as long, and saves 4 % more of a list of executions


def app(services: Services) -> Guard:
    """Build the application of a server."""
    return Guard(RouteTable(routes(services), Screen()), services)


def routes(services: Services) -> list[tuple[str, str, ASGIApp]]:
    """Return method, path and application of every route."""
    session = (_WEBSOCKET, PATH, session_app(services))
    return [*((one.method, one.path, _served(one, services)) for one in endpoints()), session]


def _served(endpoint: Endpoint, services: Services) -> ASGIApp:
    """Return a route as an application; JSON is compressed for clients that take it."""
    made = endpoint.app(services)
    is_zipped = endpoint.method == "GET" and endpoint.gives == JSON
    return GZipMiddleware(made, _LEAST_ZIPPED, _LEVEL) if is_zipped else made


class RouteTable:
    """Dispatch requests by method and path.

    A segment in braces matches one non-empty path segment; a fixed segment wins over it. Unknown paths get 404, unknown
    methods 405, and HEAD is served by the route for GET. What no route takes may be a file or a page of the web UI.
    """

    def __init__(self, routes: Iterable[tuple[str, str, ASGIApp]], screen: Screen | None = None) -> None:
        self._screen = screen
        self._tree: dict[str, Any] = {}  # method → segment → … → (parameters by position, application)
        for method, path, served in routes:
            segments = path.split("/")
            names = {at: part[1:-1] for at, part in enumerate(segments) if part.startswith("{")}
            node = self._tree.setdefault(method, {})
            for at, part in enumerate(segments):
                node = node.setdefault(_PARAMETER if at in names else part, {})
            assert _APP not in node, f"{method} {path} is declared twice"
            node[_APP] = (names, served)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, segments = scope.get("method", _WEBSOCKET), scope["path"].split("/")
        route = _match(self._tree.get("GET" if method == "HEAD" else method, {}), segments, 0)
        if route is not None:
            names, served = route
            scope["path_params"] = {name: segments[at] for at, name in names.items()}
            await served(scope, receive, send)
        elif method == _WEBSOCKET:
            await send({"type": "websocket.close", "code": 1000, "reason": ""})
        elif self._screen is not None and (page := self._screen.find(scope)) is not None:
            await page(scope, receive, send)
        else:
            await problem_response(self._refusal(method, scope["path"], segments), scope["path"])(scope, receive, send)

    def _refusal(self, method: str, path: str, segments: Sequence[str]) -> Refusal:
        methods = [one for one, node in self._tree.items() if one != _WEBSOCKET and _match(node, segments, 0)]
        if not methods:
            return Refusal(404, "no-such-route", f"No route {path} on this server.", fix="GET /docs lists the routes.")
        return Refusal(
            405,
            "method",
            f"{path} has no method {method}.",
            fix="GET /docs lists the routes and their methods.",
            headers={"Allow": ", ".join(sorted({*methods, "HEAD"} if "GET" in methods else methods))},
        )


def _match(node: dict[str, Any], segments: Sequence[str], at: int) -> tuple[dict[int, str], ASGIApp] | None:
    if at == len(segments):
        return node.get(_APP)
    segment = segments[at]
    for key in (segment, _PARAMETER) if segment and segment != _PARAMETER else (segment,):
        child = node.get(key)
        if child is not None and (found := _match(child, segments, at + 1)) is not None:
            return found
    return None


@asynccontextmanager
async def running(
    services: Services,
    relay: OutboxRelay | None = None,
    collector: ResultGC | None = None,
    scheduler: Scheduler | None = None,
    ended: EndedTriggers | None = None,
    notifications: Notifications | None = None,
    subscriptions: SubscriptionPoller | None = None,
    exports: Iterable[LogExport] = (),
    pruning: Pruning | None = None,
) -> AsyncIterator[None]:
    """Run the background tasks of the routes; on exit, end all streams and sessions."""
    services.control.sequencer.hooks.register(commits=services.metrics.committed)
    jobs = {
        "noetl-worker-registry": services.registry.run(),
        "noetl-revocation": services.gate.run(),
        "noetl-audit-links": link_audit(services.team, services.clock),
        "noetl-strike-off": strike_off(services.team, services.clock),
    }
    jobs["noetl-refused"] = services.refused.run()
    if collector is not None:
        jobs["noetl-collector"] = collector.run()
    if relay is not None:
        relay.on_attempt.append(services.metrics.sent)
        jobs["noetl-relay"] = relay.run()
    if scheduler is not None:
        jobs["noetl-scheduler"] = scheduler.run()
    if ended is not None:
        jobs["noetl-ended-triggers"] = ended.run()
    if notifications is not None:
        jobs["noetl-notifications"] = notifications.run()
    if subscriptions is not None:
        jobs["noetl-subscriptions"] = subscriptions.run()
    jobs |= {f"noetl-{one.name}": one.run() for one in exports}
    if pruning is not None:
        jobs["noetl-pruning"] = pruning.run()
    tasks = [asyncio.create_task(job, name=name) for name, job in jobs.items()]
    release = asyncio.create_task(_release_waiters(services))
    try:
        with in_process(services.handed_out):
            yield
    finally:
        services.stopping.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(release, *tasks, return_exceptions=True)
        await services.registry.close()
        await services.side.close()


async def _release_waiters(services: Services) -> None:
    await services.stopping.wait()
    services.registry.answer_claims()
    services.control.completion.let_go()
