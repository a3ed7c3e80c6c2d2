"""Provider `vault`: key-value engine, version 2, of HashiCorp Vault or OpenBao.

The credential holds `token`, or `role_id` and `secret_id` of AppRole, and may hold `url`, `mount` and `namespace`. Tested
in tests/unit/worker/secrets/managers/test_web.py against a server that replays the documented exchange.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote

from noetl.model.errors import CredentialUnavailable
from noetl.worker.secrets.managers.access import Access, Asked, Found, request


async def read(asked: Asked, access: Access) -> Found:
    given = asked.credential
    url = asked.url or given.get("url") or access.environment().get("VAULT_ADDR")
    if not url:
        raise CredentialUnavailable("the vault has no address. Set `url`, or VAULT_ADDR of the worker.")
    base = str(url).rstrip("/")
    headers = {"X-Vault-Request": "true"}
    if given.get("namespace"):
        headers["X-Vault-Namespace"] = str(given["namespace"])
    headers["X-Vault-Token"] = await _token(base, asked, access, headers)
    mount = str(given.get("mount") or "secret")
    path = asked.name if "/data/" in asked.name else f"{mount}/data/{asked.name}"
    query = f"?version={quote(str(asked.version))}" if asked.version is not None else ""
    what = f"no secret `{asked.name}` from {base}"
    answer = await access.ask(request(f"{base}/v1/{quote(path)}{query}", headers), what)
    try:
        return Found(dict(answer["data"]["data"]), str(answer["data"]["metadata"]["version"]))
    except (KeyError, TypeError, ValueError):
        raise CredentialUnavailable(f"{what}: its answer is not one of the key-value engine, version 2") from None


async def _token(base: str, asked: Asked, access: Access, headers: dict[str, str]) -> str:
    given = asked.credential
    if given.get("role_id"):
        body = json.dumps({"role_id": given["role_id"], "secret_id": given.get("secret_id", "")}).encode()
        sent = {**headers, "Content-Type": "application/json"}
        answer = await access.ask(request(f"{base}/v1/auth/approle/login", sent, "POST", body), f"no sign-in to {base}")
        try:
            token = str(answer["auth"]["client_token"])
        except (KeyError, TypeError):
            raise CredentialUnavailable(f"no sign-in to {base}: its answer holds no token") from None
        access.learn("vault", {"token": token})
        return token
    token = given.get("token") or _own_token(base, access.environment())
    if not token:
        raise CredentialUnavailable("the vault has no token. Name a credential with `token` in `auth`.")
    return str(token)


def _own_token(base: str, environment: Mapping[str, str]) -> str:
    """Return the token of the worker, which goes to its own vault only."""
    is_own = base == environment.get("VAULT_ADDR", "").rstrip("/")
    return environment.get("VAULT_TOKEN", "") if is_own else ""
