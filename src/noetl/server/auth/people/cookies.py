"""The cookie of a session. Tested in tests/server/api/test_users.py."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Scope

from noetl.server.auth.gate import COOKIE


def cookie_name(scope: Scope) -> str:
    """Return the name of the cookie, with the port: cookies do not tell ports apart."""
    return f"{COOKIE}-{(scope.get('server') or ('', 0))[1]}"


def session_cookie(scope: Scope, headers: Mapping[bytes, bytes], secret: str, lifetime_ms: int) -> str:
    """Return the header that sets the cookie of a session; `Secure` over TLS."""
    is_secure = scope.get("scheme") == "https" or headers.get(b"x-forwarded-proto", b"").lower() == b"https"
    parts = [f"{cookie_name(scope)}={secret}", "Path=/", "HttpOnly", "SameSite=Lax", f"Max-Age={lifetime_ms // 1000}"]
    return "; ".join([*parts, "Secure"] if is_secure else parts)
