"""API tokens: create, list, revoke. A secret is shown once and never stored.

Tested in tests/server/auth/test_gate.py.
"""

from __future__ import annotations

from typing import Any

from noetl.ports import Token
from noetl.server.auth.gate import IN_BROWSER, create_token
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import not_found
from noetl.wire.answers import Removed, TokenMade, TokenRow, TokenRows
from noetl.wire.requests import TokenAsked

noun = Noun("tokens", "API tokens.")


@noun.route(
    "POST",
    "/api/tokens",
    "admin",
    status=201,
    act="token.create",
    example={"role": "operator", "name": "nightly", "expires_s": 86400, "namespaces": ["team-a/"]},
    problems=(422,),
    is_plain=True,
)
async def create(call: Call, body: TokenAsked) -> TokenMade:
    """Create a token; its secret is shown once."""
    now = call.services.clock.now()
    by, scope = call.actor.name, body.namespaces
    token, secret = create_token(body.role, body.name, body.expires_s, body.pool, by, now, scope)
    detail: dict[str, Any] = {"role": token.role, "name": token.name, "namespaces": token.namespaces}
    await call.services.team.add_token(token, call.act(token.token_id, is_now=f"valid {token.role}", **detail))
    return TokenMade(**_shown(token), secret=secret)


@noun.route("GET", "/api/tokens", "admin")
async def listed(call: Call) -> TokenRows:
    """List tokens without their secrets."""
    return TokenRows(tokens=[TokenRow(**_shown(token)) for token in await call.services.team.tokens()])


@noun.route("DELETE", "/api/tokens/{token_id}", "admin", act="token.revoke", problems=(404,))
async def revoke(call: Call, token_id: str) -> Removed:
    """Revoke a token and its browsers; within a second all servers end their streams."""
    team, now = call.services.team, call.services.clock.now()
    if not await team.revoke(token_id, now, call.act(token_id, was="valid", is_now="revoked")):
        raise not_found(f"No token {token_id}.", "GET /api/tokens lists the tokens.")
    for one in await team.tokens():
        if one.created_by == token_id and one.name.startswith(IN_BROWSER) and one.revoked_at is None:
            await team.revoke(one.token_id, now, call.act(one.token_id, was="valid", is_now="revoked"))
    await call.services.gate.forget()
    return Removed(removed=1)


def _shown(token: Token) -> dict[str, Any]:
    return {name: getattr(token, name) for name in TokenRow.__struct_fields__}
