"""What a secret manager gets: the question, and the worker's HTTP client.

Tested in tests/unit/worker/secrets/managers/.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from noetl.model.errors import CredentialUnavailable
from noetl.ports.web import WebClient, WebError, WebRequest
from noetl.worker.secrets.oauth2 import Tokens

_MOST: Final = 4 << 20  # bytes of an answer
_SECONDS: Final = 30.0


class Asked(msgspec.Struct, frozen=True):
    """A secret to read; `credential` holds the fields that sign in to its manager."""

    name: str
    version: str | None = None
    project: str | None = None
    region: str | None = None
    url: str | None = None
    credential: Mapping[str, Any] = {}


class Found(msgspec.Struct, frozen=True):
    """A secret that was read: text or a map, and its version as the manager names it."""

    value: Any
    version: str | None = None


@dataclass(frozen=True)
class Access:
    """The worker's means: HTTP within the egress rules, tokens, time, folders."""

    http: Callable[[], WebClient]
    tokens: Tokens
    now: Callable[[], int]
    learn_values: Callable[[str, Mapping[str, Any]], None]
    folders: tuple[str, ...] = ()
    environment: Callable[[], Mapping[str, str]] = field(default=dict)

    def learn(self, name: str, value: Any) -> None:
        """Mask a value from now on."""
        self.learn_values(name, value if isinstance(value, Mapping) else {"secret": value})

    async def ask(self, request: WebRequest, what: str) -> Any:
        """Return the JSON of an answer. Raises CredentialUnavailable, without a body."""
        try:
            async with self.http().send(request) as response:
                content = await response.read(_MOST) or b""
        except (PermissionError, ValueError) as error:
            raise CredentialUnavailable(f"{what}: {error}") from None
        except WebError as error:
            raise CredentialUnavailable(f"{what}: {error}", retryable=True) from None
        if not 200 <= response.status < 300:
            again = response.status == 429 or response.status >= 500
            raise CredentialUnavailable(
                f"{what}: it answered {response.status}{_hint(response.status)}", retryable=again
            )
        try:
            return json.loads(content)
        except ValueError:
            raise CredentialUnavailable(f"{what}: its answer is no JSON") from None


Read = Callable[[Asked, Access], Awaitable[Found]]


def request(url: str, headers: Mapping[str, str], method: str = "GET", content: bytes | None = None) -> WebRequest:
    """Return a request without redirects, which could carry a token elsewhere."""
    return WebRequest(url=url, method=method, headers=headers, content=content, read_s=_SECONDS, follows=False)


def _hint(status: int) -> str:
    if status in (401, 403):
        return "; check the credential of the manager and what it may read"
    return "; check the name of the secret" if status in (400, 404) else ""
