"""Cache of OAuth2 tokens and of values with a lifetime, shared by all workers.

A token is fetched from the token server once for all workers, sealed in the store, and kept until shortly before it expires.
It is renewed with the newest refresh token that the server gave.
Independent of playbooks. Tested in tests/server/auth/test_access_tokens.py and
tests/unit/worker/secrets/test_keychain.py.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from math import isfinite
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from noetl.model.errors import CredentialUnavailable, NoetlError
from noetl.ports import Clock
from noetl.ports.keychain import TokenExchange
from noetl.ports.web import WebClient, WebError, WebRequest, basic
from noetl.ports.work import Masked, unmasked

EARLY_S: Final = 30.0  # a token is renewed this long before its end; a short-lived one after nine tenths
_UNKNOWN_S: Final = 300.0  # if the server does not return a lifetime
_MOST_S: Final = 365 * 86_400.0  # no token is used longer, whatever its server says
_AGAIN_S: Final = (0.2, 1.0)
_WAIT_S: Final = 0.1  # between two questions while another worker fetches the token
_ANSWER_S: Final = 30.0
_MOST_ANSWER: Final = 1 << 20  # bytes
_MOST_WHY: Final = 300  # characters of a server's reason
_READ: Final = 16_384  # of these are masked
_SENT: Final = (
    "client_id", "client_secret", "scope", "audience", "resource", "refresh_token", "username", "password", "assertion",
)  # fmt: skip

_log = logging.getLogger(__name__)


class Kept(NamedTuple):
    """A token in this worker's memory."""

    until: int
    token: Mapping[str, Any]
    version: int = 0  # in the store


Fetch = Callable[[Sequence[str]], Awaitable[Kept]]  # with the newest refresh tokens
Read = Callable[[], Awaitable[Mapping[str, Any]]]


class Tokens:
    """The tokens of a worker, by the request for them.

    With an exchange, they are shared with all workers: one fetches a token, the others wait for it.
    """

    def __init__(
        self,
        http: Callable[[], WebClient],
        clock: Clock,
        masked: Masked = unmasked,
        exchange: TokenExchange | None = None,
        refresh_s: float = EARLY_S,
    ) -> None:
        self._http = http
        self._masked = masked
        self._clock = clock
        self._exchange = exchange
        self._refresh_s = refresh_s
        self._kept: dict[str, Kept] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def get(
        self, entry: Mapping[str, Any], *, fresh: bool = False, users: str = "", is_shared: bool = True
    ) -> Mapping[str, Any]:
        """Return the token of an entry with `token_url`; raises CredentialUnavailable.

        Only the same `users` share it, and only on this worker unless `is_shared`.
        """
        about = [users, *_request(entry)]
        return await self._cached(about, lambda newest: self._fetch(entry, newest), fresh, is_shared)

    async def value(
        self, about: Any, read: Read, ttl_s: float, *, fresh: bool = False, users: str = "", is_shared: bool = True
    ) -> Mapping[str, Any]:
        """Return a value that is read once in `ttl_s` seconds, and shared as a token is."""

        async def fetch(_newest: Sequence[str]) -> Kept:
            held = {"value": dict(await read())}
            return Kept(self._clock.now() + round(min(ttl_s, _MOST_S) * 1000), held)

        found: Mapping[str, Any] = (await self._cached(["value", users, about], fetch, fresh, is_shared))["value"]
        return found

    async def _cached(self, about: list[Any], fetch: Fetch, fresh: bool, is_shared: bool) -> Mapping[str, Any]:
        key = sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()
        refused = self._kept.get(key) if fresh else None
        async with self._locks.setdefault(key, asyncio.Lock()):
            kept = self._kept.get(key)
            if kept is not None and kept is not refused and self._clock.now() < kept.until:
                return kept.token
            seen = refused.version if refused is not None else 0
            newest = "" if kept is None else str(kept.token.get("refresh_token") or "")
            found = await self._shared(key, fetch, seen, newest) if self._exchange is not None and is_shared else None
            self._kept[key] = found or await fetch((newest,))
            return self._kept[key].token

    async def _shared(self, key: str, fetch: Fetch, seen: int, newest: str) -> Kept | None:
        """Return the token that all share, fetched here if none is; None without a store.

        `newest` is the refresh token that this worker has; another worker may have shared a newer one.
        """
        assert self._exchange is not None
        while True:
            try:
                offer = await self._exchange.ask(key, seen)
            except NoetlError as error:
                _log.warning("An access token is fetched for this worker alone: %s", error)
                return None
            if offer.token is not None:
                return Kept(offer.expires_at, offer.token, offer.version)
            if offer.may_fetch:
                return await self._fetch_for_all(key, fetch, (offer.refresh_token, newest))
            await self._clock.sleep(_WAIT_S)

    async def _fetch_for_all(self, key: str, fetch: Fetch, newest: Sequence[str]) -> Kept:
        try:
            found = await fetch(newest)
            version = await self._keep(key, found)
        except BaseException:
            await self._give_back(key)
            raise
        if version is None:
            await self._give_back(key)
        return found._replace(version=version or 0)

    async def _keep(self, key: str, found: Kept) -> int | None:
        """Share a token; return its version, or None if it cannot be shared."""
        assert self._exchange is not None
        try:
            return await self._exchange.keep(key, found.token, found.until)
        except (NoetlError, OverflowError, TypeError) as error:  # it may hold what has no place in a store
            _log.warning("An access token is not shared with other workers: %s", error)
            return None

    async def _give_back(self, key: str) -> None:
        """Return the right to fetch, so that another worker can."""
        assert self._exchange is not None
        with suppress(NoetlError):  # then the right ends by itself
            await self._exchange.keep(key, None, 0)

    async def _fetch(self, entry: Mapping[str, Any], newest: Sequence[str]) -> Kept:
        """Fetch a token with the newest refresh token that the server takes.

        Of `newest`, the first that is not refused is sent; else the one of the entry.
        """
        url, form, headers = _request(entry)
        field, answer = str(entry.get("answer") or "access_token"), None
        stored = form.get("refresh_token", "")
        rotated = [one for one in dict.fromkeys(newest) if one not in ("", stored)]
        for sent in (*(rotated if form["grant_type"] == "refresh_token" else ()), stored):
            try:
                answer = await self._ask(url, {**form, "refresh_token": sent} if sent else form, headers, field)
            except CredentialUnavailable as error:
                if error.retryable or sent == stored:
                    raise
                _log.warning("The newest refresh token for %s is refused; an older one is tried.", url)
                continue
            if rotated and sent:
                answer.setdefault("refresh_token", sent)  # it stays good
            break
        assert answer is not None
        early_s = 0.0 if entry.get("auto_renew") is False else self._refresh_s
        return Kept(self._clock.now() + _life_ms(answer, entry, early_s), {**answer, "token": answer[field]})

    async def _ask(self, url: str, form: Mapping[str, str], headers: Mapping[str, str], field: str) -> dict[str, Any]:
        headers = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
        request = WebRequest(
            method="POST",
            url=url,
            headers=headers,
            content=urlencode(form).encode(),
            connect_s=_ANSWER_S,
            read_s=_ANSWER_S,
            follows=False,
        )
        problem, again = f"no token from {url}", True
        for wait in (*_AGAIN_S, None):
            try:
                async with self._http().send(request) as response:
                    content = await response.read(_MOST_ANSWER) or b""
            except (PermissionError, ValueError) as error:
                raise CredentialUnavailable(f"no token from {url}: {error}") from None
            except WebError as error:
                problem, again = f"no token from {url}: {error}", True
            else:
                problem, again = f"no token from {url}: it answered {response.status}", response.status >= 500
                if 200 <= response.status < 300:
                    return _token(url, content, field)
                if not again:
                    raise CredentialUnavailable(problem + _why(content, self._masked))
            if wait is not None:
                await self._clock.sleep(wait)
        raise CredentialUnavailable(problem, retryable=again)


def _request(entry: Mapping[str, Any]) -> tuple[str, dict[str, str], dict[str, str]]:
    data = entry.get("data")
    given = {**entry, **(data if isinstance(data, Mapping) else {})}
    form = {"grant_type": str(given.get("grant_type") or "client_credentials")}
    form |= {name: str(given[name]) for name in _SENT if given.get(name) not in (None, "")}
    if "scope" not in form and given.get("scopes"):
        scopes = given["scopes"]
        form["scope"] = scopes if isinstance(scopes, str) else " ".join(map(str, scopes))
    headers = {"Accept": "application/json"}
    if given.get("auth_method") == "basic":
        from urllib.parse import quote

        client = quote(form.pop("client_id", "")), quote(form.pop("client_secret", ""))
        headers["Authorization"] = basic(*client)
    return str(token_url(entry)), form, headers


def token_url(entry: Mapping[str, Any]) -> str | None:
    """Return the token URL of an entry; None if it holds its own token."""
    found = entry.get("token_url") or entry.get("endpoint")
    return str(found) if found else None


def _token(url: str, content: bytes, field: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get(field), str):
        raise CredentialUnavailable(f"no token from {url}: its answer holds no `{field}`")
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise CredentialUnavailable(f"no token from {url}: its answer is not valid Unicode") from None
    return found


def _why(content: bytes, masked: Masked) -> str:
    """Return the error that the server reports; never what was sent."""
    try:
        found = json.loads(content)
    except ValueError:
        return ""
    parts = [str(found[name]) for name in ("error", "error_description") if isinstance(found, dict) and found.get(name)]
    whole = ": ".join(parts).encode(errors="replace").decode()
    text = masked(whole[:_READ], "end" if len(whole) > _READ else "")
    return f" ({text if len(text) <= _MOST_WHY else text[:_MOST_WHY] + '…'})" if parts else ""


def _seconds(value: Any) -> float:
    """Return a lifetime; the default for what is no finite number."""
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return _UNKNOWN_S
    return seconds if isfinite(seconds) else _UNKNOWN_S


def _life_ms(answer: Mapping[str, Any], entry: Mapping[str, Any], early_s: float) -> int:
    told = [_seconds(value) for value in (answer.get("expires_in"), entry.get("ttl_seconds")) if value is not None]
    seconds = min((*told, _MOST_S)) if told else _UNKNOWN_S
    return round(max(0.0, seconds - (early_s if early_s <= seconds / 2 else seconds / 10)) * 1000)
