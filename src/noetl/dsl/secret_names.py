"""Recognise names of keys, parameters and fields that hold a secret.

Page and cursor tokens are not secrets. Tested in tests/unit/dsl/rules/test_tools.py.
"""

from __future__ import annotations

from functools import lru_cache

_ENDINGS = (
    "password", "passwd", "_pwd", "passphrase", "api_key", "apikey", "secret_key", "secret_access_key", "private_key",
    "client_secret", "access_token", "auth_token", "bearer_token", "refresh_token", "authorization",
)  # fmt: skip
_EXACT = frozenset(
    {"token", "pwd", "secret", "bearer", "cookie", "set_cookie", "session", "sessionid", "session_id", "credentials"}
)
_OTHER_TOKENS = frozenset(
    {"next", "page", "next_page", "continuation", "cursor", "sync", "delta", "max", "start", "end", "resume", "csrf",
     "pagination"}
)  # fmt: skip


@lru_cache(maxsize=4096)
def is_secret_name(key: str) -> bool:
    """Return whether a key of this name holds a secret itself."""
    name = key.rsplit(".", 1)[-1].lower().replace("-", "_")
    if name in _EXACT or name.endswith(_ENDINGS):
        return True
    return name.endswith("_token") and name.removesuffix("_token") not in _OTHER_TOKENS
