"""Authentication and authorisation: API tokens and roles.

A token's secret is random and long; only its SHA-256 is stored. A server on loopback also has a token of its own, which
the commands of its user find in a file: its holder is `local`, an admin. Without authentication every caller is; only a
request that came through a proxy is from another machine and requires a token. The role of a route is declared with the route. Tested in tests/server/auth/test_gate.py and test_matrix.py.
"""

from __future__ import annotations

import ipaddress
import logging
import secrets
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal, Protocol

from msgspec import structs

from noetl.model.errors import InvalidInput, NoetlError, log_level
from noetl.ports import Clock, Token, Tokens
from noetl.server.auth.failed_attempts import FailedAttempts
from noetl.server.auth.namespaces import Reach, namespaces_of
from noetl.server.auth.revocation import Revocation, RightsChanged, TokenEnded
from noetl.server.problems import Refusal

Role = Literal["open", "user", "member", "viewer", "operator", "editor", "admin", "worker"]
ROLES: tuple[str, ...] = ("viewer", "operator", "editor", "admin", "worker")  # of tokens
_MAY = {  # role of a route → roles that may use it
    "user": frozenset({*ROLES, "none"}),  # any known caller
    "member": frozenset(ROLES),  # any token, also a worker's
    "viewer": frozenset({"viewer", "operator", "editor", "admin"}),
    "operator": frozenset({"operator", "editor", "admin"}),
    "editor": frozenset({"editor", "admin"}),
    "admin": frozenset({"admin"}),
    "worker": frozenset({"worker", "admin"}),
}
SESSION = "session:"  # before the digest of a session, where tokens have their id
COOKIE = "noetl-session"  # and the port
IN_BROWSER = "browser of "  # begins the names of tokens that browsers hold
BROWSER_S = 12 * 60 * 60
_PREFIX = "noetl_"
_KNOWN_MS = 500  # a token is cached for this long; a revoked one stops working within it
_MOST_KNOWN = 1_024
_NOTE_EVERY_MS = 60_000
_log = logging.getLogger(__name__)


Rights = tuple[str, tuple[tuple[str, str], ...]]  # of an actor: `role` and `grants`


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller of a request."""

    name: str  # in the audit trail
    role: str  # everywhere; empty: only where `grants` say
    token_id: str | None = None
    pool: str | None = None  # a worker's token may be bound to one
    grants: tuple[tuple[str, str], ...] = ()  # namespaces, each with the role that the actor has there
    csrf: str = ""  # token that a change must also send: the caller is known by a cookie
    expires_at: int | None = None


LOCAL = Actor("local", "admin")
NOBODY = Actor("nobody", "open")
FORWARDED = Actor("forwarded", "open")  # without a token, through a proxy
_OF_PROXIES = frozenset({b"forwarded", b"via", b"x-real-ip", b"x-client-ip", b"true-client-ip"})  # and x-forwarded-*


def may(actor: Actor, role: Role) -> bool:
    """Return whether an actor may use a route with this role, everywhere or somewhere."""
    return role == "open" or reach(actor, role) != ()


def reach(actor: Actor, role: Role) -> Reach:
    """Return the namespaces in which an actor has a role; None: everywhere."""
    allowed = _MAY.get(role)
    if allowed is None or actor.role in allowed:
        return None
    return tuple(namespace for namespace, has in actor.grants if has in allowed)


def new_secret() -> tuple[str, str]:
    """Create the id and the secret of a token."""
    token_id = secrets.token_hex(4)
    return token_id, f"{_PREFIX}{token_id}_{secrets.token_urlsafe(32)}"


def digest(secret: str) -> str:
    """Return the hash of a secret, as it is stored."""
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def create_token(
    role: str,
    name: str,
    expires_s: int | None,
    pool: str | None,
    by: str,
    now: int,
    namespaces: Sequence[str] = (),
) -> tuple[Token, str]:
    """Return a new token as it is stored, and its secret. Raises InvalidInput."""
    if role not in ROLES:
        raise InvalidInput(f"Unknown role `{role}`. Use one of {', '.join(ROLES)}.")
    if pool is not None and role != "worker":
        raise InvalidInput("Only a token with the role `worker` can be bound to a pool. Remove the pool.")
    if namespaces and role == "worker":
        raise InvalidInput("A worker takes the work of a pool, whatever its namespace. Remove the namespaces.")
    scope = namespaces_of(namespaces)
    token_id, secret = new_secret()
    expires = None if expires_s is None else now + expires_s * 1000
    return Token(token_id, digest(secret), role, name, now, by, expires, pool=pool, namespaces=scope), secret


def csrf_token(secret: str) -> str:
    """Return the CSRF token of a cookie's secret, which it does not reveal."""
    return sha256(f"csrf:{secret}".encode()).hexdigest()


class SessionActors(Protocol):
    """Actors of the sessions of users."""

    async def actor(self, secret: str) -> Actor | None: ...

    async def rights(self, digests: Sequence[str], now: int) -> dict[str, Rights]: ...

    def forget(self) -> None: ...


class _Valid:
    """Tokens and sessions that have not ended, with what they may now."""

    def __init__(self, tokens: Tokens, sessions: SessionActors | None) -> None:
        self._tokens = tokens
        self._sessions = sessions

    async def rights(self, token_ids: Collection[str], now: int) -> dict[str, Rights | None]:
        """Return the rights of those that are valid; None: those of a token stay."""
        digests = [one.removeprefix(SESSION) for one in token_ids if one.startswith(SESSION)]
        tokens = [one for one in token_ids if not one.startswith(SESSION)]
        found: dict[str, Rights | None] = {}
        if tokens:
            found = dict.fromkeys(await self._tokens.valid_tokens(tokens, now))
        if digests and self._sessions is not None:
            found |= {SESSION + one: has for one, has in (await self._sessions.rights(digests, now)).items()}
        return found


class Gate:
    """Authenticate requests by their `Authorization` header, or by a cookie."""

    def __init__(
        self,
        tokens: Tokens,
        clock: Clock,
        *,
        required: bool,
        local: str = "",
        sessions: SessionActors | None = None,
    ) -> None:
        self._tokens = tokens
        self._clock = clock
        self.required = required
        self._local = digest(local) if local else ""
        self._sessions = sessions
        self._revocation = Revocation(_Valid(tokens, sessions), clock)
        self._failed = FailedAttempts(clock)
        self._noted: dict[str, int] = {}  # tokens, and when their use was stored
        self._known: OrderedDict[str, tuple[int, Token]] = OrderedDict()

    async def who(self, headers: Mapping[bytes, bytes], address: str) -> Actor:
        """Return the actor of a request. Raises Refusal for an invalid token."""
        if not self.required and not _is_forwarded(headers):
            return LOCAL
        header = headers.get(b"authorization", b"").decode("latin-1")
        if not header:
            actor = await self._browser(headers.get(b"cookie", b""))
            if actor is not None:
                return actor
            return NOBODY if self.required else FORWARDED
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise unauthorised("The Authorization header is not of the form `Bearer TOKEN`.")
        return await self.holder(secret.strip(), address)

    async def _browser(self, cookie: bytes) -> Actor | None:
        """Return the actor of a browser: its cookie names a session of a user, or a token."""
        for secret in _session_secrets(cookie):
            if secret.startswith(_PREFIX):
                actor = await self.in_browser(secret)
            else:
                actor = await self._sessions.actor(secret) if self._sessions is not None else None
            if actor is not None:
                return actor
        return None

    async def in_browser(self, secret: str) -> Actor | None:
        """Return the actor of a token in a cookie; None if the token is not valid."""
        now = self._clock.now()
        token = await self._look_up(digest(secret), now)
        if token is None or _why_invalid(token, now):
            return None
        await self._note_use(token, now)
        return replace(_actor(token), csrf=csrf_token(secret), expires_at=token.expires_at)

    async def holder(self, secret: str, address: str) -> Actor:
        """Return the actor of a token's secret. Raises Refusal, after a delay."""
        now, found = self._clock.now(), digest(secret)
        if secrets.compare_digest(found, self._local):
            return LOCAL
        token = await self._look_up(found, now)
        reason = _why_invalid(token, now)
        if token is None or reason:
            await self._failed.delay(address)
            raise unauthorised(reason)
        await self._note_use(token, now)
        return _actor(token)

    async def browser_token(self, secret: str, address: str) -> tuple[Token, str]:
        """Return a new token for a holder's browser, and its secret. Raises Refusal.

        It has the role of the other token and ends after half a day; `created_by` names the other token.
        """
        holder = await self.holder(secret, address)
        role = holder.role or holder.grants[0][1]
        by, scope = holder.token_id or holder.name, [namespace for namespace, _ in holder.grants]
        now = self._clock.now()
        token, made = create_token(role, f"{IN_BROWSER}{holder.name}", BROWSER_S, holder.pool, by, now, scope)
        ends = now + BROWSER_S * 1000
        return structs.replace(token, expires_at=min(holder.expires_at or ends, ends)), made

    async def _look_up(self, token_digest: str, now: int) -> Token | None:
        cached = self._known.get(token_digest)
        if cached is not None and 0 <= now - cached[0] < _KNOWN_MS:  # a clock may be set back
            return cached[1]
        token = await self._tokens.token(token_digest)
        if token is None:  # not cached: wrong tokens must not displace others
            return None
        self._known[token_digest] = (now, token)
        self._known.move_to_end(token_digest)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return token

    async def _note_use(self, token: Token, now: int) -> None:
        """Store that a token is used, at most once a minute at each server."""
        if now - self._noted.get(token.token_id, token.used_at or 0) < _NOTE_EVERY_MS:
            return
        self._noted[token.token_id] = now
        if len(self._noted) > _MOST_KNOWN:
            del self._noted[next(iter(self._noted))]
        try:
            await self._tokens.used(token.token_id, now)
        except NoetlError as error:  # the request itself may need no store
            _log.log(log_level(error), "The use of a token is not recorded: %s", error)

    @contextmanager
    def valid(self, actor: Actor) -> Iterator[None]:
        """Interrupt the block when the actor's token or rights end. Raises Refusal."""
        try:
            with self._revocation.valid(actor.token_id, (actor.role, actor.grants)):
                yield
        except TokenEnded:
            raise unauthorised("The token was revoked or has expired.") from None
        except RightsChanged:
            detail = f"The roles of {actor.name} have changed since the request was sent."
            raise Refusal(403, "forbidden", detail, fix="Send it again.") from None

    async def forget(self) -> None:
        """Clear the cache of tokens and end what they keep open, after one was revoked."""
        self._known.clear()
        if self._sessions is not None:
            self._sessions.forget()
        await self._revocation.look()

    async def delay(self, address: str) -> None:
        """Wait because of a wrong password, as after a wrong token. Raises Refusal."""
        await self._failed.delay(address)

    async def run(self) -> None:
        """Look for tokens that other servers revoked, until cancelled."""
        await self._revocation.run()


def _session_secrets(cookie: bytes) -> list[str]:
    """Return the secrets of sessions in a cookie header, at most four."""
    pairs = (part.strip().partition(b"=") for part in cookie.split(b";"))
    return [value.decode("latin-1") for name, _, value in pairs if name.startswith(COOKIE.encode())][:4]


def _actor(token: Token) -> Actor:
    name = token.name or token.token_id
    if token.namespaces:
        grants = tuple((namespace, token.role) for namespace in token.namespaces)
        return Actor(name, "", token.token_id, token.pool, grants, expires_at=token.expires_at)
    return Actor(name, token.role, token.token_id, token.pool, expires_at=token.expires_at)


def _why_invalid(token: Token | None, now: int) -> str:
    if token is None:
        return "The token is not known."
    if token.revoked_at is not None:
        return "The token was revoked."
    return "The token has expired." if token.expires_at is not None and token.expires_at <= now else ""


def _is_forwarded(names: Iterable[bytes]) -> bool:
    return any(name in _OF_PROXIES or name.startswith(b"x-forwarded") for name in names)


def refusal(actor: Actor, role: Role) -> Refusal:
    """Return the answer to an actor that may not use a route."""
    if actor is FORWARDED:
        return unauthorised("A request through a proxy requires a token, even with `--auth none`.")
    return unauthorised("This route requires a token, or a session.") if actor is NOBODY else _forbidden(actor, role)


def unauthorised(detail: str) -> Refusal:
    return Refusal(
        401,
        "unauthorised",
        detail,
        where="header Authorization",
        fix="Send `Authorization: Bearer TOKEN`; `noetl token create --role ROLE` creates one, "
        "`noetl token show` prints that of your own server on this machine.",
        headers={"WWW-Authenticate": 'Bearer realm="noetl"'},
    )


def _forbidden(actor: Actor, role: Role) -> Refusal:
    needs = "worker" if role == "worker" else f"{role} or more"
    return Refusal(
        403,
        "forbidden",
        f"{actor.name} has {_roles(actor)}; this requires {needs}{'' if actor.role else ' there, or everywhere'}.",
        fix="Use a token with that role.",
    )


def _roles(actor: Actor) -> str:
    if actor.role or not actor.grants:
        return f"the role {actor.role or 'none'}"
    return ", ".join(f"the role {role} in {namespace}" for namespace, role in actor.grants)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def has_own_token(mode: str, host: str) -> bool:
    """Return whether a server makes a token for the commands of its user."""
    return mode == "auto" and is_loopback(host)


def needs_token(mode: str, host: str, *, has_tokens: bool, option: str) -> bool:
    """Return whether a server requires tokens. Raises InvalidInput.

    `option` names the store in a printed command. Only `none` requires none, and only on loopback. A server with `auto` on
    loopback has a token of its own (`has_own_token`), so no other has to exist.
    """
    if mode not in ("auto", "none", "token"):
        raise InvalidInput(f"Unknown value of `--auth`: {mode}. Use auto, none or token.")
    required = mode != "none"
    if not required and not is_loopback(host):
        raise InvalidInput(
            f"Refusing to listen on {host} without authentication. "
            "Bind to 127.0.0.1, or remove `--auth none` and create a token: "
            f"`noetl token create --role admin --name me {option}`."
        )
    if required and not has_tokens and not has_own_token(mode, host):
        raise InvalidInput(
            f"The server on {host} requires tokens, and none exists. Create one; its secret is shown once: "
            f"`noetl token create --role admin --name me {option}`."
        )
    return required
