"""Provider `azure`: Key Vault, as an application of Microsoft Entra.

The credential is one of type `azure`, or holds a `token`. Tested in tests/unit/worker/secrets/managers/test_web.py against
a server that replays the documented exchange.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from noetl.model.errors import CredentialUnavailable
from noetl.worker.secrets.managers.access import Access, Asked, Found, request

_AUTHORITY: Final = "https://login.microsoftonline.com"
_SCOPE: Final = "https://vault.azure.net/.default"
_API: Final = "7.4"


async def read(asked: Asked, access: Access) -> Found:
    url = asked.url or asked.credential.get("url")
    if not url:
        raise CredentialUnavailable("the key vault has no address. Set `url`: https://NAME.vault.azure.net.")
    base = str(url).rstrip("/")
    version = f"/{quote(str(asked.version))}" if asked.version is not None else ""
    token = await access_token(asked.credential, access, _SCOPE)
    what = f"no secret `{asked.name}` from {base}"
    address = f"{base}/secrets/{quote(asked.name, safe='')}{version}?api-version={_API}"
    answer = await access.ask(request(address, {"Authorization": f"Bearer {token}"}), what)
    if not isinstance(answer, dict) or not isinstance(answer.get("value"), str):
        raise CredentialUnavailable(f"{what}: its answer holds no value")
    return Found(answer["value"], str(answer.get("id", "")).rpartition("/")[2] or None)


async def access_token(given: Mapping[str, Any], access: Access, scope: str) -> str:
    """Return an access token of an application for a service of Azure."""
    token = given.get("token") or given.get("access_token")
    if token:
        return str(token)
    if not given.get("tenant_id"):
        raise CredentialUnavailable("there is no sign-in to Azure. Name a credential of type `azure` in `auth`.")
    entry = {
        "token_url": token_url(given),
        "client_id": given.get("client_id"),
        "client_secret": given.get("client_secret"),
        "scope": scope,
    }
    return str((await access.tokens.get(entry))["token"])


def token_url(given: Mapping[str, Any]) -> str:
    """Return the address at which an application signs in."""
    authority = str(given.get("authority") or _AUTHORITY).rstrip("/")
    return f"{authority}/{quote(str(given['tenant_id']), safe='')}/oauth2/v2.0/token"
