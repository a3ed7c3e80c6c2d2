"""Provider `azure`: Key Vault, as an application of Microsoft Entra.

The credential is one of type `azure`, or holds a `token`. Tested in tests/unit/worker/secrets/managers/test_web.py against
a server that replays the documented exchange.
"""

from __future__ import annotations

from typing import Final
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
    token = await _token(asked, access)
    what = f"no secret `{asked.name}` from {base}"
    address = f"{base}/secrets/{quote(asked.name, safe='')}{version}?api-version={_API}"
    answer = await access.ask(request(address, {"Authorization": f"Bearer {token}"}), what)
    if not isinstance(answer, dict) or not isinstance(answer.get("value"), str):
        raise CredentialUnavailable(f"{what}: its answer holds no value")
    return Found(answer["value"], str(answer.get("id", "")).rpartition("/")[2] or None)


async def _token(asked: Asked, access: Access) -> str:
    given = asked.credential
    token = given.get("token") or given.get("access_token")
    if token:
        return str(token)
    if not given.get("tenant_id"):
        raise CredentialUnavailable("the key vault has no sign-in. Name a credential of type `azure` in `auth`.")
    authority = str(given.get("authority") or _AUTHORITY).rstrip("/")
    entry = {
        "token_url": f"{authority}/{given['tenant_id']}/oauth2/v2.0/token",
        "client_id": given.get("client_id"),
        "client_secret": given.get("client_secret"),
        "scope": _SCOPE,
    }
    return str((await access.tokens.get(entry))["token"])
