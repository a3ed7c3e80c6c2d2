"""Who asks, and what they may: API tokens and roles.

A token's secret is random and long, so its SHA-256 is all that is kept. Without authentication everybody is `local`, an
admin; the server then listens on loopback only. Which role a route asks for stands with the route. Tested in
tests/server/test_auth.py and test_matrix.py.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from noetl.model.errors import InvalidInput
from noetl.ports import Clock, Token, Tokens
from noetl.server.problems import Refusal

Role = Literal["open", "member", "viewer", "operator", "editor", "admin", "worker"]
ROLES: tuple[str, ...] = ("viewer", "operator", "editor", "admin", "worker")  # that a token may have
_MAY = {  # who may use a route that asks for a role
    "member": frozenset(ROLES),  # whoever has a token, workers too
    "viewer": frozenset({"viewer", "operator", "editor", "admin"}),
    "operator": frozenset({"operator", "editor", "admin"}),
    "editor": frozenset({"editor", "admin"}),
    "admin": frozenset({"admin"}),
    "worker": frozenset({"worker", "admin"}),
}
_PREFIX = "noetl_"
_KNOWN_MS = 1_000  # for so long a token is not looked up again; a revoked one ends within it
_MOST_KNOWN = 1_024


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks."""

    name: str  # as the audit trail has it
    role: str
    token_id: str | None = None
    pool: str | None = None  # a worker's token may be bound to one


LOCAL = Actor("local", "admin")
NOBODY = Actor("nobody", "open")


def may(actor: Actor, role: Role) -> bool:
    """Tell whether an actor may use a route that asks for a role."""
    return role == "open" or actor.role in _MAY[role]


def new_secret() -> tuple[str, str]:
    """Make a token's id and its secret."""
    token_id = secrets.token_hex(4)
    return token_id, f"{_PREFIX}{token_id}_{secrets.token_urlsafe(32)}"


def digest(secret: str) -> str:
    """Give what is kept of a secret."""
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


class Gate:
    """Tells who asks, from the `Authorization` header."""

    def __init__(self, tokens: Tokens, clock: Clock, *, required: bool) -> None:
        self._tokens = tokens
        self._clock = clock
        self.required = required
        self.everybody = None if required else LOCAL  # who asks, where it is not asked who that is
        self._known: OrderedDict[str, tuple[int, Token | None]] = OrderedDict()

    async def who(self, header: str | None) -> Actor:
        """Give the actor of a request. Raises Refusal where a token is not good; without one it is nobody."""
        if self.everybody is not None:
            return self.everybody
        if not header:
            return NOBODY
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise unauthorised("the Authorization header is not of the form `Bearer TOKEN`")
        return await self.holder(secret.strip())

    async def holder(self, secret: str) -> Actor:
        """Give whoever holds a secret."""
        now = self._clock.now()
        token = await self._look_up(digest(secret), now)
        if token is None:
            raise unauthorised("the token is not known")
        if token.revoked_at is not None:
            raise unauthorised("the token was revoked")
        if token.expires_at is not None and token.expires_at <= now:
            raise unauthorised("the token has expired")
        return Actor(token.name or token.token_id, token.role, token.token_id, token.pool)

    async def _look_up(self, found: str, now: int) -> Token | None:
        known = self._known.get(found)
        if known is not None and now - known[0] < _KNOWN_MS:
            return known[1]
        token = await self._tokens.token(found)
        self._known[found] = (now, token)
        self._known.move_to_end(found)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return token

    def forget(self) -> None:
        """Look every token up again: one was revoked here."""
        self._known.clear()


def unauthorised(detail: str) -> Refusal:
    return Refusal(
        401,
        "unauthorised",
        detail,
        where="header Authorization",
        fix="Send `Authorization: Bearer TOKEN`; `noetl token create --role ROLE` makes one.",
        headers={"WWW-Authenticate": 'Bearer realm="noetl"'},
    )


def forbidden(actor: Actor, role: Role) -> Refusal:
    needs = "worker" if role == "worker" else f"{role} or more"
    return Refusal(
        403,
        "forbidden",
        f"{actor.name} has the role {actor.role}, and this needs {needs}",
        fix="Use a token with that role.",
    )


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def needs_token(mode: str, host: str, *, has_tokens: bool) -> bool:
    """Decide whether a server asks for tokens: `auto` does where others can reach it. Raises InvalidInput.

    What others can reach is never without authentication.
    """
    if mode not in ("auto", "none", "token"):
        raise InvalidInput(f"`--auth {mode}` is not known: auto, none or token.")
    required = mode == "token" or (mode == "auto" and not is_loopback(host))
    if not required and not is_loopback(host):
        raise InvalidInput(
            f"{host} can be reached by others, and the server would ask nobody who they are. "
            "Leave `--auth none` away and make a token (`noetl token create --role admin`), or bind 127.0.0.1."
        )
    if required and not has_tokens:
        raise InvalidInput(
            f"the server on {host} asks for tokens, and there is none yet. Make one first: "
            "`noetl token create --role admin --name me`; it is shown once."
        )
    return required
