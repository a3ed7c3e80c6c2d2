"""Creation of API tokens. Tested in tests/server/auth/test_gate.py."""

from __future__ import annotations

from noetl.model.errors import InvalidInput
from noetl.ports import Token
from noetl.server.auth.gate import ROLES, digest, new_secret


def create_token(role: str, name: str, expires_s: int | None, pool: str | None, by: str, now: int) -> tuple[Token, str]:
    """Return a new token as it is stored, and its secret. Raises InvalidInput."""
    if role not in ROLES:
        raise InvalidInput(f"Unknown role `{role}`. Use one of {', '.join(ROLES)}.")
    if pool is not None and role != "worker":
        raise InvalidInput("Only a token with the role `worker` can be bound to a pool. Remove the pool.")
    token_id, secret = new_secret()
    expires = None if expires_s is None else now + expires_s * 1000
    return Token(token_id, digest(secret), role, name, now, by, expires, pool=pool), secret
