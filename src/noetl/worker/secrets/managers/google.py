"""Provider `google`: Secret Manager of Google Cloud; tokens of service accounts.

The credential is one of type `service_account`, or holds a `token`; without one, the metadata server of the machine is
asked. Tested in tests/unit/worker/secrets/managers/test_web.py against a server that replays the documented exchange.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from noetl.model.errors import CredentialUnavailable
from noetl.worker.secrets.assertions import rsa_key, sign_claims
from noetl.worker.secrets.managers.access import Access, Asked, Found, request

_API: Final = "https://secretmanager.googleapis.com"
_TOKEN: Final = "https://oauth2.googleapis.com/token"
_METADATA: Final = "http://metadata.google.internal"
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_STEP_S: Final = 300  # claims change this often, so that the cached token is found again
_LIFE_S: Final = 3_600


async def read(asked: Asked, access: Access) -> Found:
    if asked.url and not asked.credential:  # else a playbook could send the machine's token anywhere
        raise CredentialUnavailable("`url` needs a credential. Name one in `auth`, or remove `url`.")
    account = account_of(asked.credential)
    base = str(asked.url or _API).rstrip("/")
    name = asked.name
    if not name.startswith("projects/"):
        project = asked.project or account.get("project_id") or access.environment().get("GOOGLE_CLOUD_PROJECT")
        if not project:
            raise CredentialUnavailable(f"the secret `{name}` has no project. Set `project`.")
        name = f"projects/{project}/secrets/{name}"
    if "/versions/" not in name:
        name += f"/versions/{asked.version if asked.version is not None else 'latest'}"
    token = await access_token(asked.credential, access)
    what = f"no secret `{asked.name}` from {base}"
    answer = await access.ask(request(f"{base}/v1/{quote(name)}:access", {"Authorization": f"Bearer {token}"}), what)
    try:
        value = b64decode(answer["payload"]["data"]).decode("utf-8", "replace")
        return Found(value, str(answer.get("name", name)).rpartition("/")[2])
    except (KeyError, TypeError, ValueError):
        raise CredentialUnavailable(f"{what}: its answer holds no value") from None


async def access_token(credential: Mapping[str, Any], access: Access) -> str:
    """Return an access token of a service account, or of the machine."""
    given = credential.get("token") or credential.get("access_token")
    if given:
        return str(given)
    account = account_of(credential)
    if account:
        scopes = credential.get("scopes") or _SCOPE
        claims = {"scope": scopes if isinstance(scopes, str) else " ".join(map(str, scopes))}
        found = await access.tokens.get(_exchange(account, claims, access.now()), is_shared=False)
        return str(found["token"])
    url = f"{_metadata(credential)}/computeMetadata/v1/instance/service-accounts/default/token"
    answer = await access.ask(request(url, {"Metadata-Flavor": "Google"}), "no token of this machine")
    token = str(answer.get("access_token", ""))
    access.learn("google", {"token": token})
    return token


async def id_token(credential: Mapping[str, Any], audience: str, access: Access) -> dict[str, Any]:
    """Return an ID token for an audience, of a service account or of the machine."""
    account = account_of(credential)
    if not account:
        raise CredentialUnavailable("`google_id_token` needs a credential of type `service_account`.")
    entry = _exchange(account, {"target_audience": audience}, access.now())
    return dict(await access.tokens.get({**entry, "answer": "id_token"}, is_shared=False))


def _exchange(account: Mapping[str, Any], claims: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Return the entry that exchanges a signed assertion for a token."""
    url = str(account.get("token_uri") or _TOKEN)
    at = now // 1000 // _STEP_S * _STEP_S
    whole = {"iss": account["client_email"], "aud": url, "iat": at, "exp": at + _LIFE_S, **claims}
    key = rsa_key(str(account.get("private_key") or ""), "", "the service account", "Store its key file again.")
    assertion = sign_claims(whole, key, str(account.get("private_key_id") or ""))
    return {"token_url": url, "grant_type": _GRANT, "assertion": assertion, "ttl_seconds": _LIFE_S - _STEP_S}


def account_of(credential: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a key file; empty if the credential has none."""
    whole = credential.get("service_account_json")
    if isinstance(whole, str):
        try:
            whole = json.loads(whole)
        except ValueError:
            raise CredentialUnavailable("`service_account_json` is no JSON. Store the key file again.") from None
    found = whole if isinstance(whole, Mapping) else credential
    return found if found.get("client_email") else {}


def _metadata(credential: Mapping[str, Any]) -> str:
    return str(credential.get("metadata_url") or _METADATA).rstrip("/")
