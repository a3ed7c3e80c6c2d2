"""One listing of an object store or a warehouse, signed with a credential.

It proves that a credential works, without changing anything. Requests are signed as S3, Google Cloud Storage, Azure Blob
Storage and the SQL API of Snowflake document it; access tokens come from where secret managers get theirs. Tested in
tests/unit/worker/secrets/test_storage.py.
"""

from __future__ import annotations

import hmac
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

from noetl.model.errors import CredentialUnavailable
from noetl.ports.web import WebRequest
from noetl.worker.secrets.assertions import fingerprint, rsa_key, sign_claims
from noetl.worker.secrets.managers import aws, azure, google
from noetl.worker.secrets.managers.access import Access, request

_GOOGLE: Final = "https://storage.googleapis.com"
AZURE_SCOPE: Final = "https://storage.azure.com/.default"
_JWT_S: Final = 600
_AZURE_API: Final = "2021-08-06"
_CODE: Final = re.compile(rb'<Code>([\w.]{1,100})</Code>|"(?:code|reason)"\s*:\s*"([\w.]{1,100})"')
_PART: Final = re.compile(r"([A-Za-z]+)=([^;]*)")


class Listing(NamedTuple):
    """A request, the place it goes to, and what a success proves."""

    request: WebRequest
    place: str
    proves: str
    signs_in: bool = True


async def s3(data: Mapping[str, Any], access: Access, url: str | None) -> Listing:
    """List a bucket of S3, or the buckets."""
    region = str(aws.first(data, "region", "region_name", "aws_region") or "us-east-1")
    base = str(url or aws.first(data, "endpoint", "endpoint_url") or f"https://s3.{region}.amazonaws.com")
    keys, bucket = aws.keys_of(data, {}), str(data.get("bucket") or "")
    return _s3_listing(base, bucket, keys, region, access, is_virtual=data.get("url_style") == "vhost")


def _s3_listing(
    base: str, bucket: str, keys: tuple[str, str, str], region: str, access: Access, *, is_virtual: bool = False
) -> Listing:
    base = base.rstrip("/")
    place = base + ("/" + quote(bucket, safe="") if bucket else "/")
    if bucket and is_virtual:
        scheme, _, host = base.partition("://")
        place = f"{scheme}://{quote(bucket, safe='')}.{host}/"
    address = place + ("?list-type=2&max-keys=1" if bucket else "")
    at = datetime.fromtimestamp(access.now() / 1000, UTC)
    headers = {"X-Amz-Content-Sha256": sha256(b"").hexdigest()}
    signed = aws.sign("GET", address, headers, b"", keys, region, "s3", at)
    return Listing(request(address, signed), place, _listed(bucket))


async def gcs(data: Mapping[str, Any], access: Access, url: str | None) -> Listing:
    """List a bucket of Google Cloud Storage, or the buckets: by HMAC key or token."""
    base, bucket = str(url or _GOOGLE).rstrip("/"), str(data.get("bucket") or "")
    if aws.first(data, "key_id", "access_key_id"):
        return _s3_listing(base, bucket, aws.keys_of(data, {}), "auto", access)
    account = google.account_of(data)
    if not account:
        raise CredentialUnavailable("The credential has neither an HMAC key nor a service account.")
    token = await google.access_token(data, access)
    project = quote(str(account.get("project_id") or ""), safe="")
    path = f"/storage/v1/b/{quote(bucket, safe='')}/o?maxResults=1" if bucket else f"/storage/v1/b?project={project}"
    return Listing(request(base + path, {"Authorization": f"Bearer {token}"}), base, _listed(bucket))


async def azure_blobs(data: Mapping[str, Any], access: Access, url: str | None) -> Listing | None:
    """List the containers of a storage account; None for an application without one."""
    parts = dict(_PART.findall(str(data.get("connection_string") or "")))
    account = str(aws.first(data, "account_name", "account") or parts.get("AccountName") or "")
    if not account and "BlobEndpoint" not in parts:
        return None
    suffix = parts.get("EndpointSuffix") or "core.windows.net"
    base = str(url or parts.get("BlobEndpoint") or f"https://{account}.blob.{suffix}").rstrip("/")
    address, at = f"{base}/?comp=list&maxresults=1", datetime.fromtimestamp(access.now() / 1000, UTC)
    headers = {"x-ms-date": format_datetime(at, usegmt=True), "x-ms-version": _AZURE_API}
    sas = str(data.get("sas_token") or parts.get("SharedAccessSignature") or "").lstrip("?")
    key = data.get("account_key") or parts.get("AccountKey")
    if key:
        headers["Authorization"] = f"SharedKey {account}:{_shared_key(address, headers, account, str(key))}"
    elif sas:
        address += f"&{sas}"
    else:
        token = await azure.access_token(data, access, AZURE_SCOPE)
        headers["Authorization"] = f"Bearer {token}"
    return Listing(request(address, headers), base, "Listed the containers.")


def _shared_key(url: str, headers: Mapping[str, str], account: str, key: str) -> str:
    """Sign a request without a body for Azure Storage."""
    parts = urlsplit(url)
    named = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    resource = f"/{account}{parts.path}" + "".join(
        f"\n{name.lower()}:{value}" for name, value in sorted(parse_qsl(parts.query))
    )
    text = "GET" + "\n" * 12 + named + resource
    try:
        secret = b64decode(key, validate=True)
    except ValueError:
        raise CredentialUnavailable("The account key is not in base64. Store the key that the portal shows.") from None
    return b64encode(hmac.digest(secret, text.encode(), "sha256")).decode()


async def snowflake(data: Mapping[str, Any], access: Access, url: str | None) -> Listing:
    """Ask the SQL API for the version, with a key pair; else for any answer."""
    account = str(aws.first(data, "account", "sf_account") or "")
    if not account:
        raise CredentialUnavailable("The credential has no `account`.")
    base = str(url or f"https://{quote(account, safe='.')}.snowflakecomputing.com").rstrip("/")
    pem = aws.first(data, "private_key", "sf_private_key")
    if not pem:
        told = "The account answers; user and password were not tried: only drivers of Snowflake send them."
        return Listing(request(f"{base}/", {}), base, told, signs_in=False)
    key = rsa_key(str(pem), str(data.get("private_key_passphrase") or ""), "the credential", "Store the key again.")
    user = str(aws.first(data, "user", "username", "sf_user") or "").upper()
    subject, now = f"{account.partition('.')[0].upper()}.{user}", access.now() // 1000
    claims = {"iss": f"{subject}.{fingerprint(key)}", "sub": subject, "iat": now, "exp": now + _JWT_S}
    body: dict[str, Any] = {"statement": "SELECT current_version()", "timeout": 10}
    for name in ("warehouse", "database", "schema", "role"):
        body |= {name: given} if (given := aws.first(data, name, f"sf_{name}")) else {}
    headers = {
        "Authorization": f"Bearer {sign_claims(claims, key)}",
        "X-Snowflake-Authorization-Token-Type": "KEYPAIR_JWT",
        "Content-Type": "application/json",
        "Accept": "application/json",
    }
    content = json.dumps(body).encode()
    return Listing(request(f"{base}/api/v2/statements", headers, "POST", content), base, f"Signed in as {user}.")


def error_code(body: bytes) -> str:
    """Return the code of an error in XML or JSON, which quotes no request."""
    found = _CODE.search(body)
    return (found[1] or found[2]).decode() if found else ""


def _listed(bucket: str) -> str:
    return f"Listed the bucket {bucket}." if bucket else "Listed the buckets."
