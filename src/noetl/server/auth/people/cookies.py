"""Cookies of sessions and sign-ins. Tested in tests/server/api/test_users.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.types import Scope

from noetl.server.auth.gate import COOKIE

_ATTEMPT: Final = "noetl-oidc"
_ATTEMPT_S: Final = 600


def cookie_name(scope: Scope) -> str:
    """Return the name of the cookie, with the port: cookies do not tell ports apart."""
    return f"{COOKIE}-{(scope.get('server') or ('', 0))[1]}"


def is_secure(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a request came over TLS, here or to a proxy."""
    return scope.get("scheme") == "https" or headers.get(b"x-forwarded-proto", b"").lower() == b"https"


def session_cookie(
    scope: Scope, headers: Mapping[bytes, bytes], secret: str, lifetime_ms: int, *, same_site: str = "Lax"
) -> str:
    """Return the header that sets the cookie of a session; `Secure` over TLS."""
    return _cookie(scope, headers, f"{cookie_name(scope)}={secret}", lifetime_ms // 1000, same_site)


def attempt_cookie(scope: Scope, headers: Mapping[bytes, bytes], text: str) -> str:
    """Return the header that keeps the secrets of a sign-in, or removes them."""
    return _cookie(scope, headers, f"{_ATTEMPT}={text}", _ATTEMPT_S if text else 0)


def attempt_in(headers: Mapping[bytes, bytes]) -> str:
    """Return the secrets of a sign-in that the browser has begun, or an empty text."""
    pairs = (part.strip().partition("=") for part in headers.get(b"cookie", b"").decode("latin-1").split(";"))
    return next((value for name, _, value in pairs if name == _ATTEMPT), "")


def _cookie(scope: Scope, headers: Mapping[bytes, bytes], value: str, seconds: int, same_site: str = "Lax") -> str:
    parts = [value, "Path=/", "HttpOnly", f"SameSite={same_site}", f"Max-Age={seconds}"]
    return "; ".join([*parts, "Secure"] if is_secure(scope, headers) else parts)
