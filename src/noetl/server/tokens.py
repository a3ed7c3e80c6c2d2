"""Makes API tokens: the secret that is shown once, and what is kept of it.

The API and the command line share it. Tested in tests/server/test_auth.py.
"""

from __future__ import annotations

from noetl.model.errors import InvalidInput
from noetl.ports import Token
from noetl.server.auth import ROLES, digest, new_secret


def made(role: str, name: str, expires_s: int | None, pool: str | None, by: str, now: int) -> tuple[Token, str]:
    """Make a token; gives it as it is kept, and its secret. Raises InvalidInput."""
    if role not in ROLES:
        raise InvalidInput(f"there is no role `{role}`; there are {', '.join(ROLES)}.")
    if pool is not None and role != "worker":
        raise InvalidInput("only a worker's token is bound to a pool.")
    token_id, secret = new_secret()
    expires = None if expires_s is None else now + expires_s * 1000
    return Token(token_id, digest(secret), role, name, now, by, expires, pool=pool), secret
