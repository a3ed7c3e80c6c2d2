"""The web UI, plain pages, OpenAPI. Tested in tests/server/http/test_guard.py."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape

from starlette.responses import Response

from noetl import __version__
from noetl.ports import Selection
from noetl.server.api.admin.session import sign_in_token, token_cookie
from noetl.server.auth.gate import may, reach
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.openapi import described, document
from noetl.server.screen import Screen
from noetl.wire.requests import PageQuery

_SHOWN = 50
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .8rem .3rem 0;vertical-align:top}"
    "tr{border-bottom:1px solid #d8dee4}code{background:#f3f4f6;padding:0 .3em}a{color:#0b5fff}"
    "@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}code{background:#21262d}a{color:#6cb6ff}}"
)
noun = Noun("page", "Pages for a browser.")


def _page(title: str, body: str) -> Response:
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return Response(
        f'<!doctype html><html lang="en"><head>{head}<style>{_STYLE}</style></head><body>{body}</body></html>',
        media_type="text/html; charset=utf-8",
    )


@noun.route("GET", "/", "open", gives="text/html")
async def status(call: Call, query: PageQuery) -> Response:
    """Show the web UI; `token` signs a browser in, and leaves the address."""
    if query.token:
        secret, actor = await sign_in_token(call, query.token)
        return Response(None, 303, {"Location": "/", "Set-Cookie": token_cookie(call, secret, actor)})
    screen = Screen()
    return screen.page(call.scope) if screen.is_built else await _plain(call)


async def _plain(call: Call) -> Response:
    """Return the latest executions as a page without scripts: there is no build."""
    links = (
        '<p><a href="/docs">The API</a> · <a href="/api/openapi.json">OpenAPI</a> · <a href="/health">health</a></p>'
    )
    built = "<p>The web UI is not built here: <code>make ui</code> builds it (Node 20 or newer).</p>"
    head = f"<h1>NoETL {escape(__version__)}</h1>{links}{built}"
    if not may(call.actor, "viewer"):
        return _page(
            "NoETL",
            head + "<p>This server requires a token. Open the link that it printed at its start, or use its API.</p>",
        )
    rows = await call.services.store.executions(Selection(limit=_SHOWN, within=reach(call.actor, "viewer")))
    lines = []
    for row in rows:
        name, at = escape(str(row["execution_id"])), datetime.fromtimestamp(row.get("started_at", 0) / 1000, UTC)
        cells = (
            f'<a href="/api/executions/{name}">{name}</a>',
            escape(str(row["status"])),
            escape(str(row.get("path", ""))),
            f"{at:%Y-%m-%d %H:%M:%S} UTC",
        )
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    table = "<table><tr><th>execution</th><th>status</th><th>playbook</th><th>started</th></tr>" + "".join(lines)
    return _page("NoETL", head + (table + "</table>" if lines else "<p>No executions yet.</p>"))


@noun.route("GET", "/api/openapi.json", "open")
async def openapi(_call: Call) -> Response:
    """Return the OpenAPI 3.1 document of this API."""
    return Response(document(), media_type="application/json")


@noun.route("GET", "/docs", "open", gives="text/html")
async def docs(_call: Call) -> Response:
    """Show the routes of this API."""
    parts = ['<h1>API</h1><p><a href="/">Executions</a> · <a href="/api/openapi.json">OpenAPI</a></p>']
    for name, about, routes in described():
        parts.append(f"<h2>{escape(name)}</h2><p>{escape(about)}</p><table>")
        parts += [
            f"<tr><td><code>{escape(route.method)} {escape(route.path)}</code></td>"
            f"<td>{escape(route.summary)}</td><td>{escape(route.role)}</td></tr>"
            for route in routes
        ]
        parts.append("</table>")
    return _page("NoETL API", "".join(parts))
