"""Provider `aws`: AWS Secrets Manager; requests have Signature Version 4.

The credential is one of type `s3`; without one, the worker's AWS_ACCESS_KEY_ID and its companions are used. Tested in
tests/unit/worker/secrets/managers/test_aws.py against a real server of moto.
"""

from __future__ import annotations

import hmac
import json
from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlsplit

from noetl.model.errors import CredentialUnavailable
from noetl.worker.secrets.managers.access import Access, Asked, Found, request

_SERVICE = "secretsmanager"
_STAGES = ("AWSCURRENT", "AWSPREVIOUS", "AWSPENDING")


async def read(asked: Asked, access: Access) -> Found:
    keys = keys_of(asked.credential, access.environment())
    region = asked.region or first(asked.credential, "region", "region_name", "aws_region")
    region = str(region or access.environment().get("AWS_REGION") or "us-east-1")
    given = asked.url or first(asked.credential, "endpoint", "endpoint_url")
    url = str(given or f"https://{_SERVICE}.{region}.amazonaws.com").rstrip("/") + "/"
    body: dict[str, str] = {"SecretId": asked.name}
    if asked.version is not None:
        body["VersionStage" if asked.version in _STAGES else "VersionId"] = str(asked.version)
    content = json.dumps(body).encode()
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": f"{_SERVICE}.GetSecretValue"}
    at = datetime.fromtimestamp(access.now() / 1000, UTC)
    signed = sign("POST", url, headers, content, keys, region, _SERVICE, at)
    what = f"no secret `{asked.name}` from {url}"
    answer = await access.ask(request(url, signed, "POST", content), what)
    value = answer.get("SecretString")
    if value is None and isinstance(answer.get("SecretBinary"), str):
        value = b64decode(answer["SecretBinary"]).decode("utf-8", "replace")
    if value is None:
        raise CredentialUnavailable(f"{what}: its answer holds no value")
    return Found(value, answer.get("VersionId"))


def sign(
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: bytes,
    keys: tuple[str, str, str],
    region: str,
    service: str,
    at: datetime,
) -> dict[str, str]:
    """Return the headers with the signature of a request, whose query is encoded."""
    key_id, key, session = keys
    parts, stamp, day = urlsplit(url), at.strftime("%Y%m%dT%H%M%SZ"), at.strftime("%Y%m%d")
    all_headers = {**headers, "X-Amz-Date": stamp} | ({"X-Amz-Security-Token": session} if session else {})
    lower = {"host": parts.netloc, **{name.lower(): value.strip() for name, value in all_headers.items()}}
    names = ";".join(sorted(lower))
    lines = "".join(f"{name}:{lower[name]}\n" for name in sorted(lower))
    query = "&".join(sorted(parts.query.split("&")))
    path = parts.path if service == "s3" else quote(parts.path)
    canonical = "\n".join((method, path or "/", query, lines, names, sha256(content).hexdigest()))
    scope = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, sha256(canonical.encode()).hexdigest()))
    signing = f"AWS4{key}".encode()
    for part in (day, region, service, "aws4_request"):
        signing = hmac.digest(signing, part.encode(), "sha256")
    signature = hmac.digest(signing, text.encode(), "sha256").hex()
    named = f"AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**all_headers, "Authorization": named}


def keys_of(given: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[str, str, str]:
    """Return id, key and session token of a credential, or of the environment."""
    key_id = first(given, "access_key_id", "key_id", "aws_access_key_id")
    if key_id:
        key = first(given, "secret_access_key", "secret_key", "aws_secret_access_key")
        return str(key_id), str(key or ""), str(first(given, "session_token", "aws_session_token") or "")
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    found = tuple(environment.get(name, "") for name in names)
    if not found[0]:
        raise CredentialUnavailable("there are no keys of AWS. Name a credential of type `s3` in `auth`.")
    return found[0], found[1], found[2]


def first(given: Mapping[str, Any], *names: str) -> Any:
    """Return the first field that has a value."""
    return next((given[name] for name in names if given.get(name)), None)
