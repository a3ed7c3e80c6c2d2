"""Sign in with OpenID Connect: authorization code with PKCE, state and nonce.

The provider is asked when a user signs in, not at the start: a server whose provider is down still serves tokens and local
users. Requests to it have a time limit and a size limit, and follow no redirect. Tested in tests/server/auth/test_oidc.py
against a real provider.
"""

from __future__ import annotations

import asyncio
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from noetl.model.errors import InvalidInput, InvalidSetting
from noetl.ports import Clock
from noetl.ports.people import Grant
from noetl.server.auth.people.sessions import checked_grants
from noetl.server.problems import Refusal
from noetl.settings import OIDC_CLIENT_ID, OIDC_ISSUER, OIDC_ROLES, OidcSettings

if TYPE_CHECKING:
    import ssl

    import httpx

_TIMEOUT_S: Final = 5.0
_MOST_BYTES: Final = 1 << 20
_KEPT_MS: Final = 3_600_000  # description and keys of the provider
_AGAIN_MS: Final = 10_000  # an unknown key fetches the keys again, at most this often
_LEEWAY_S: Final = 30
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_MOST_GROUPS: Final = 200


class Provider(msgspec.Struct, frozen=True):
    """Description of a provider, as its discovery document has it."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class Attempt(msgspec.Struct, frozen=True):
    """Secrets of one sign-in, kept by the browser that began it."""

    state: str
    nonce: str
    verifier: str  # of PKCE

    def to_text(self) -> str:
        return f"{self.state}.{self.nonce}.{self.verifier}"


def attempt_of(text: str) -> Attempt | None:
    """Read the secrets of a sign-in; None if there are none."""
    parts = text.split(".")
    return Attempt(*parts) if len(parts) == 3 and all(parts) else None


class Identity(msgspec.Struct, frozen=True):
    """A person, as the provider vouches for it."""

    name: str
    subject: str  # issuer and `sub`: never given to another person
    groups: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()


def checked_roles(settings: OidcSettings) -> list[tuple[str, tuple[Grant, ...]]]:
    """Return the roles of groups, if all settings can be used. Raises InvalidSetting."""
    found = []
    for group, role, namespace in settings.roles:
        try:
            found.append((group, checked_grants([Grant(role, namespace)])))
        except InvalidInput as error:
            raise InvalidSetting(f"{OIDC_ROLES} has the group {group!r}. {error}", variable=OIDC_ROLES) from None
    if not is_safe(settings.issuer):
        told = f"{OIDC_ISSUER} must be an https address, not {settings.issuer[:200]!r}."
        raise InvalidSetting(told, variable=OIDC_ISSUER)
    if not settings.client_id:
        told = f"{OIDC_ISSUER} is set, but {OIDC_CLIENT_ID} is not. Set it, or remove both."
        raise InvalidSetting(told, variable=OIDC_ISSUER)
    return found


class OpenIdConnect:
    """Client of one provider."""

    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        self._roles = checked_roles(settings)
        self._settings = settings
        self._clock = clock
        self._lock = asyncio.Lock()
        self._provider: tuple[int, Provider] | None = None
        self._keys: tuple[int, list[dict[str, Any]]] = (-_KEPT_MS, [])

    async def begin(self, redirect: str) -> tuple[str, Attempt]:
        """Return the address at the provider to go to. Raises Refusal if it is not there."""
        provider = await self._described()
        attempt = Attempt(*(secrets.token_urlsafe(32) for _ in range(3)))
        challenge = urlsafe_b64encode(sha256(attempt.verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect,
            "scope": self._settings.scopes,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        mark = "&" if "?" in provider.authorization_endpoint else "?"
        return f"{provider.authorization_endpoint}{mark}{urlencode(asked)}", attempt

    async def finish(self, attempt: Attempt, state: str, code: str, redirect: str) -> Identity:
        """Return who has signed in. Raises Refusal."""
        if not secrets.compare_digest(attempt.state.encode(), state.encode()):
            raise refused("The answer belongs to another sign-in: its `state` differs.")
        provider = await self._described()
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "client_id": self._settings.client_id,
            "code_verifier": attempt.verifier,
        }
        if self._settings.client_secret:
            body["client_secret"] = self._settings.client_secret
        answer = await self._fetch("POST", provider.token_endpoint, body)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise refused("The provider sent no ID token.")
        return self._identity(await self._verified(provider, token, attempt.nonce))

    async def _verified(self, provider: Provider, token: str, nonce: str) -> Mapping[str, Any]:
        """Return the claims of an ID token. Raises Refusal."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in _ALGORITHMS:
                raise refused("The ID token is not signed, or not with a public key.")
            key = jwt.PyJWK.from_dict(await self._key(provider, header.get("kid")), algorithm)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(_ALGORITHMS),
                audience=self._settings.client_id,
                issuer=provider.issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise refused(f"The ID token is not valid: {error}.") from None
        if not isinstance(claims.get("nonce"), str) or not secrets.compare_digest(
            claims["nonce"].encode(), nonce.encode()
        ):
            raise refused("The ID token belongs to another sign-in: its `nonce` differs.")
        if claims.get("azp", self._settings.client_id) != self._settings.client_id:
            raise refused("The ID token was issued to another client.")
        return claims

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        name = claims.get(self._settings.name_claim)
        if not isinstance(name, str) or not name:
            raise refused(f"The ID token has no claim `{self._settings.name_claim}` with a name.")
        found = claims.get(self._settings.groups_claim)
        given = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        groups = tuple(dict.fromkeys(one for one in given if isinstance(one, str)))[:_MOST_GROUPS]
        grants = (grant for group, has in self._roles if group in (*groups, "*") for grant in has)
        return Identity(name, f"{self._settings.issuer} {claims['sub']}", groups, tuple(dict.fromkeys(grants)))

    def redirect(self, own: str) -> str:
        """Return the address that the provider sends browsers back to."""
        return self._settings.redirect_url or own

    async def _described(self) -> Provider:
        """Return the description of the provider, from the cache if it is recent."""
        async with self._lock:
            now = self._clock.now()
            if self._provider is not None and 0 <= now - self._provider[0] < _KEPT_MS:
                return self._provider[1]
            issuer = self._settings.issuer
            found = await self._fetch("GET", issuer.rstrip("/") + "/.well-known/openid-configuration")
            try:
                provider = msgspec.convert(found, Provider)
            except msgspec.ValidationError as error:
                raise _unavailable(f"its description is not valid ({error})") from None
            if provider.issuer != issuer:
                raise _unavailable(f"it calls itself {provider.issuer[:200]!r}, not {issuer!r}")
            for address in (provider.authorization_endpoint, provider.token_endpoint, provider.jwks_uri):
                if not is_safe(address):
                    raise _unavailable(f"its address {address[:200]!r} is neither https nor on this machine")
            self._provider = (now, provider)
            return provider

    async def _key(self, provider: Provider, kid: Any) -> dict[str, Any]:
        """Return the key with an id; fetch the keys again if it is new. Raises Refusal."""
        async with self._lock:
            now, (at, keys) = self._clock.now(), self._keys
            key = _find(keys, kid)
            if now - at >= _KEPT_MS or (key is None and now - at >= _AGAIN_MS):
                found = await self._fetch("GET", provider.jwks_uri)
                given = found.get("keys")
                keys = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
                self._keys, key = (now, keys), _find(keys, kid)
        if key is None:
            raise refused("The ID token is signed with a key that the provider does not publish.")
        return key

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        """Certificates to trust, read once: it takes up to 50 ms."""
        import httpx

        return httpx.create_ssl_context()

    async def _fetch(self, method: str, url: str, body: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Send a bounded request to the provider; return its JSON. Raises Refusal."""
        import httpx

        try:
            async with (
                asyncio.timeout(_TIMEOUT_S),
                httpx.AsyncClient(timeout=_TIMEOUT_S, verify=self._certificates) as client,
                client.stream(method, url, data=body, headers={"Accept": "application/json"}) as answer,
            ):
                data = await _read(answer)
        except AttributeError:  # reset as it opened: the library asks for the socket, and uvloop has none
            raise _unavailable("the connection was reset as it opened") from None
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
            raise _unavailable(str(error) or type(error).__name__) from None
        try:
            found = msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise _unavailable(f"it answered {answer.status_code} without JSON") from None
        if answer.status_code >= 400:
            raise refused(f"The provider refused the sign-in: {str(found.get('error', answer.status_code))[:100]}.")
        return found


async def _read(answer: httpx.Response) -> bytes:
    data = b""
    async for piece in answer.aiter_bytes():
        data += piece
        if len(data) > _MOST_BYTES:
            raise _unavailable("its answer is too large")
    return data


def _find(keys: Sequence[dict[str, Any]], kid: Any) -> dict[str, Any] | None:
    """Return the key with an id; without an id, the only one."""
    if kid is None:
        return keys[0] if len(keys) == 1 else None
    return next((one for one in keys if one.get("kid") == kid), None)


def is_safe(url: str) -> bool:
    """Return whether a provider is reached over TLS, or is on this machine."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and local))


def refused(detail: str) -> Refusal:
    """Return the answer to a sign-in that the provider or its token does not support."""
    return Refusal(401, "sign-in", detail, fix="Sign in again: GET /api/session/oidc.")


def _unavailable(why: str) -> Refusal:
    return Refusal(
        503,
        "provider",
        f"The identity provider cannot be used: {why[:300]}.",
        fix="Try again later, or sign in with a local user or a token.",
        retry_after_s=5.0,
    )
