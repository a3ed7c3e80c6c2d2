"""HTTP clients of a worker, one for each way to verify certificates.

Tasks share them. Nothing of one request remains for the next: no cookies, and no header of a task that follows a redirect
to another host, port or scheme. Tested in tests/tools/test_http.py and tests/unit/worker/http/test_egress.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # most runs do not use HTTP
    from noetl.worker.http.egress import Egress

_ORIGIN = "noetl_origin"  # among a request's extensions, which its redirects share
# All that follows a redirect to another origin; any other header of a task may hold a secret.
_FOLLOWING = frozenset(
    ("host", "accept", "accept-encoding", "accept-language", "connection", "user-agent", "content-length",
     "content-type", "idempotency-key", "transfer-encoding")
)  # fmt: skip
_KEPT = 20  # idle connections


class HttpClient:
    """The clients, each created on first use."""

    def __init__(self, egress: Egress | None = None) -> None:
        self._egress = egress
        self._clients: dict[Any, Any] = {}

    def get(self, verify: bool | bytes = True) -> Any:
        if verify not in self._clients:
            self._clients[verify] = self._made(verify)
        return self._clients[verify]

    def _made(self, verify: bool | bytes) -> Any:
        from http.cookiejar import DefaultCookiePolicy

        import httpx

        checked: Any = verify
        if isinstance(verify, bytes):
            import ssl

            checked = ssl.create_default_context(cadata=verify.decode("ascii", "ignore"))
        transport = None
        if self._egress is not None and not self._egress.is_open:
            from noetl.worker.http.egress import guarded

            transport = guarded(self._egress, checked)
        # No limit: a task that waits for a connection would time out for nothing.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT)
        hooks = {"request": [_without_secrets]}
        client = httpx.AsyncClient(verify=checked, transport=transport, event_hooks=hooks, limits=limits)
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        return client

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()


async def _without_secrets(request: Any) -> None:
    """Remove the task's headers from a request redirected to another origin."""
    url = request.url
    origin = (url.scheme, url.host, url.port)
    if request.extensions.setdefault(_ORIGIN, origin) != origin:
        for name in [name for name in request.headers if name not in _FOLLOWING]:
            del request.headers[name]
