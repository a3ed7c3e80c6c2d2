"""Sign in, sign out, who is calling. Tested in tests/server/api/test_users.py."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from noetl.ports import AuditEntry
from noetl.server.auth.gate import SESSION, Actor, unauthorised
from noetl.server.auth.people.cookies import attempt_cookie, attempt_in, cookie_name, is_secure, session_cookie
from noetl.server.auth.people.oidc import OpenIdConnect, attempt_of, refused
from noetl.server.http.endpoint import Call, Noun, address_of
from noetl.server.problems import not_found
from noetl.wire.answers import Removed
from noetl.wire.people import GrantRow, Me, OidcQuery, SignIn

_BEGINS = "session.begin"
noun = Noun("session", "Sessions of users in a browser.")


@noun.route(
    "POST",
    "/api/session",
    "open",
    act=_BEGINS,
    example={"user": "ada", "password": "correct horse battery"},
    problems=(401, 422, 429),
)
async def sign_in(call: Call, body: SignIn) -> Response:
    """Sign a user or a token's holder in: sets a cookie, answers with the CSRF token."""
    if body.token:
        made, holder = await sign_in_token(call, body.token)
        headers = {"Set-Cookie": token_cookie(call, made, holder)}
        return Response(msgspec.json.encode(me_of(holder)), 200, headers, "application/json")
    services = call.services
    user = await services.sessions.check_password(body.user, body.password)
    if user is None:
        await services.gate.delay(address_of(call.scope))
        raise unauthorised("The name or the password is wrong, or the user is disabled.")
    now = services.clock.now()
    secret, session = await services.sessions.begin(user.name, replace(call.act(user.name), actor=user.name))
    await services.people.save_user(replace(user, signed_in_at=now))
    actor = await services.sessions.actor(secret)
    if actor is None:  # disabled meanwhile
        raise unauthorised("The user was disabled.")
    answer = msgspec.json.encode(me_of(actor))
    headers = {"Set-Cookie": session_cookie(call.scope, call.headers, secret, session.expires_at - now)}
    return Response(answer, 200, headers, "application/json")


async def sign_in_token(call: Call, secret: str) -> tuple[str, Actor]:
    """Begin the session of a token's holder: a token of its own for the browser."""
    gate = call.services.gate
    token, made = await gate.browser_token(secret, address_of(call.scope))
    act = call.act(token.token_id, is_now=f"valid {token.role}", name=token.name)
    await call.services.team.add_token(token, replace(act, actor=token.created_by, action=_BEGINS))
    actor = await gate.in_browser(made)
    if actor is None:  # revoked meanwhile
        raise unauthorised("The token was revoked.")
    return made, actor


def token_cookie(call: Call, secret: str, actor: Actor) -> str:
    """Return the header that sets the cookie of a token's browser."""
    lifetime_ms = (actor.expires_at or 0) - call.services.clock.now()
    return session_cookie(call.scope, call.headers, secret, lifetime_ms, same_site="Strict")


@noun.route("GET", "/api/session/oidc", "open", gives="text/html", problems=(404, 503))
async def to_provider(call: Call) -> Response:
    """Send a browser to the OpenID Connect provider to sign in."""
    url, attempt = await _provider(call).begin(_callback(call))
    headers = {"Location": url, "Set-Cookie": attempt_cookie(call.scope, call.headers, attempt.to_text())}
    return Response(None, 303, headers)


@noun.route("GET", "/api/session/oidc/callback", "open", gives="text/html", problems=(401, 404, 503))
async def from_provider(call: Call, query: OidcQuery) -> Response:
    """Begin the session of a user that the provider has sent back."""
    services, provider = call.services, _provider(call)
    attempt = attempt_of(attempt_in(call.headers))
    if attempt is None:
        raise refused("This browser has not begun a sign-in here, or it took too long.")
    if query.error or not query.code:
        raise refused(f"The provider refused the sign-in: {query.error[:100] or 'it sent no code'}.")
    found = await provider.finish(attempt, query.state, query.code, _callback(call))
    user = await services.sessions.admit(found.name, found.subject, found.grants, found.groups)
    if user is None:
        raise refused(f"`{found.name[:100]}` cannot sign in: the user is disabled, or another one has this name.")
    now = services.clock.now()
    act = AuditEntry(now, user.name, _BEGINS, user.name, {"provider": found.subject})
    secret, session = await services.sessions.begin(user.name, act)
    answer = Response(None, 303, {"Location": "/"})
    answer.headers.append("Set-Cookie", session_cookie(call.scope, call.headers, secret, session.expires_at - now))
    answer.headers.append("Set-Cookie", attempt_cookie(call.scope, call.headers, ""))
    return answer


def _provider(call: Call) -> OpenIdConnect:
    """Return the provider of this server. Raises Refusal if it has none."""
    if call.services.oidc is None:
        raise not_found("This server has no OpenID Connect provider.", "Sign in with POST /api/session.")
    return call.services.oidc


def _callback(call: Call) -> str:
    scheme = "https" if is_secure(call.scope, call.headers) else "http"
    return _provider(call).redirect(f"{scheme}://{call.header(b'host')}/api/session/oidc/callback")


@noun.route("DELETE", "/api/session", "user", act="session.end", problems=(401, 404), of="path")
async def sign_out(call: Call) -> Response:
    """End the session of the caller's browser."""
    name, act = call.actor.token_id or "", call.act(call.actor.name)
    if name.startswith(SESSION):
        ended = await call.services.people.end_session(name.removeprefix(SESSION), act)
    elif call.actor.csrf:  # a token in a cookie
        ended = await call.services.team.revoke(name, call.services.clock.now(), act)
    else:
        raise not_found("The request has no session.", "A token is ended with DELETE /api/tokens/{token_id}.")
    await call.services.gate.forget()
    headers = {"Set-Cookie": f"{cookie_name(call.scope)}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"}
    return Response(msgspec.json.encode(Removed(removed=int(ended))), 200, headers, "application/json")


@noun.route("GET", "/api/me", "user", problems=(401,), of="path")
async def me(call: Call) -> Me:
    """Return who the caller is, with roles, namespaces and the end of the session."""
    return me_of(call.actor)


def me_of(actor: Actor) -> Me:
    """Return an actor as it sees itself."""
    name = actor.token_id or ""
    kind = "session" if actor.csrf else "token" if name else "local"
    grants = [GrantRow(role=role, namespace=namespace) for namespace, role in actor.grants]
    return Me(name=actor.name, role=actor.role, grants=grants, kind=kind, expires_at=actor.expires_at, csrf=actor.csrf)
