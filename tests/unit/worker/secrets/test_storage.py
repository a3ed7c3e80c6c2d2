"""Credentials of object stores and of Snowflake are tested against servers.

S3 is a real server of moto that checks signatures. Google, Azure and Snowflake have no emulator here: a local server
answers as they document it, and checks each signature with code of its own (HMAC keys of Google with botocore's).
"""

from __future__ import annotations

import hmac
import json
from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from noetl.clock import SteadyClock
from noetl.server.auth.credential_types import TYPES
from noetl.settings import ServerSettings
from noetl.wire.answers import CredentialTested
from noetl.wiring.credential_test import CredentialTests
from noetl.wiring.local_credentials import local_credentials
from tests.server.serving import in_process, places
from tests.tools.web import Asked, Web

KEY = "hush/hush+hush-key-of-the-test"
BUCKET = "orders"


async def tried(kind: str, data: dict[str, Any], url: str | None = None) -> CredentialTested:
    found = await CredentialTests(None, SteadyClock())("mine", kind, data, url)
    fields = TYPES[kind].fields
    assert not any(str(data[one.name]) in str(found) for one in fields if one.secret and one.name in data)
    return found


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """Return the credential of a user of moto, who may list one bucket."""
    import boto3  # type: ignore[import-untyped]
    from moto.server import ThreadedMotoServer

    running = ThreadedMotoServer("127.0.0.1", 0)
    running.start()
    host, port = running.get_host_and_port()
    url, first = f"http://{host}:{port}", {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    iam = boto3.client("iam", endpoint_url=url, region_name="us-east-1", **first)
    boto3.client("s3", endpoint_url=url, region_name="us-east-1", **first).create_bucket(Bucket=BUCKET)
    iam.create_user(UserName="ada")
    allowed = {"Effect": "Allow", "Action": ["s3:*"], "Resource": "*"}
    iam.put_user_policy(
        UserName="ada", PolicyName="p", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    )
    made = iam.create_access_key(UserName="ada")["AccessKey"]
    assert httpx.post(f"{url}/moto-api/reset-auth", content="0").is_success  # from now on it checks signatures
    yield {"access_key_id": made["AccessKeyId"], "secret_access_key": made["SecretAccessKey"], "endpoint": url}
    assert httpx.post(f"{url}/moto-api/reset-auth", content="inf").is_success  # it is of the process
    running.stop()


@pytest.mark.asyncio
async def test_a_bucket_of_s3_is_listed(s3: dict[str, str]) -> None:
    found = await tried("s3", {**s3, "bucket": BUCKET})
    assert (found.ok, found.reached, found.message) == (True, f"{s3['endpoint']}/{BUCKET}", "Listed the bucket orders.")
    every = await tried("s3", s3)
    assert (every.ok, every.message) == (True, "Listed the buckets.")
    wrong = await tried("s3", {**s3, "secret_access_key": KEY, "bucket": BUCKET})
    assert (wrong.ok, wrong.message) == (False, "It answered 403 SignatureDoesNotMatch. Check the keys.")
    unknown = await tried("s3", {**s3, "access_key_id": "AKIANOBODY", "bucket": BUCKET})
    assert (unknown.ok, unknown.message) == (False, "It answered 403 InvalidAccessKeyId. Check the keys.")
    missing = await tried("s3", {**s3, "bucket": "none"})
    assert (missing.ok, "404 NoSuchBucket" in missing.message) == (False, True)
    closed = await tried("s3", {**s3, "endpoint": "http://127.0.0.1:1"})
    assert (closed.ok, closed.message.startswith("Cannot connect")) == (False, True)


@pytest.mark.asyncio
async def test_a_server_and_a_local_store_test_a_stored_credential(tmp_path: Path, s3: dict[str, str]) -> None:
    async with in_process(tmp_path, ServerSettings()) as served:
        body = {"kind": "s3", "data": {**s3, "bucket": BUCKET}}
        await served.json("PUT", "/api/credentials/store", body)
        answer = await served.json("POST", "/api/credentials/store/test", {})
        assert (answer["ok"], answer["message"]) == (True, "Listed the bucket orders.")
    async with local_credentials(places(tmp_path), "test") as local:
        found = await local.test_credential("store")
        assert (found.ok, found.message) == (True, "Listed the bucket orders.")


class Cloud(Web):
    """A server whose answers depend on the signature of the request."""

    def reply(self, handler: Any) -> None:
        asked = self.asked[-1]
        path = asked.path.partition("?")[0]
        good = {"/token": None, "/acme/oauth2/v2.0/token": None}
        if path in good:
            self.pages[path] = {"access_token": "issued-token-of-the-test", "expires_in": 3600}
            super().reply(handler)
            return
        is_right = self.is_right(asked)
        content = b"<Error><Code>AuthenticationFailed</Code></Error>"
        handler.send_response(200 if is_right else 403)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def is_right(self, asked: Asked) -> bool:
        scheme = asked.headers.get("authorization", "").partition(" ")[0]
        checks = {"AWS4-HMAC-SHA256": _aws, "SharedKey": _azure, "Bearer": _bearer}
        if not scheme:
            return "sig=right" in asked.path
        return checks[scheme](asked, self.url)


def _aws(asked: Asked, url: str) -> bool:
    from botocore.auth import S3SigV4Auth  # type: ignore[import-untyped]
    from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
    from botocore.credentials import Credentials  # type: ignore[import-untyped]

    request = AWSRequest(
        "GET", url + asked.path, headers={"X-Amz-Content-SHA256": asked.headers["x-amz-content-sha256"]}
    )
    request.context["timestamp"] = asked.headers["x-amz-date"]
    auth = S3SigV4Auth(Credentials("GOOGKEY", KEY), "s3", "auto")
    request.headers["X-Amz-Date"] = asked.headers["x-amz-date"]
    expected = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    return asked.headers["authorization"].endswith(f"Signature={expected}")


def _azure(asked: Asked, url: str) -> bool:
    """Check a signature as Microsoft documents Shared Key for a GET."""
    parts, headers = urlsplit(asked.path), asked.headers
    empty = "\n".join(("GET", *[""] * 11, ""))  # content headers, Date, conditions and Range
    canonical = f"x-ms-date:{headers['x-ms-date']}\nx-ms-version:{headers['x-ms-version']}\n"
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    resource = f"/acme{parts.path}" + "".join(f"\n{name}:{query[name]}" for name in sorted(query))
    text = f"{empty}{canonical}{resource}"
    right = b64encode(hmac.new(b64decode(AZURE_KEY), text.encode(), sha256).digest()).decode()
    return headers["authorization"] == f"SharedKey acme:{right}"


def _bearer(asked: Asked, url: str) -> bool:
    token = asked.headers["authorization"].removeprefix("Bearer ")
    if asked.headers.get("x-snowflake-authorization-token-type") != "KEYPAIR_JWT":
        return token == "issued-token-of-the-test"
    text, _, signature = token.rpartition(".")
    raw = urlsafe_b64decode(signature + "==")
    PRIVATE.public_key().verify(raw, text.encode(), padding.PKCS1v15(), hashes.SHA256())
    claims = json.loads(urlsafe_b64decode(text.partition(".")[2] + "=="))
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    mark = b64encode(sha256(PRIVATE.public_key().public_bytes(*form)).digest()).decode()
    statement = json.loads(asked.body)["statement"]
    return (claims["iss"], claims["sub"], statement) == (
        f"ACME-EU1.LOADER.SHA256:{mark}",
        "ACME-EU1.LOADER",
        "SELECT current_version()",
    )


AZURE_KEY = b64encode(b"key-of-the-storage-account-of-the-test").decode()
PRIVATE = rsa.generate_private_key(65537, 2048)


def pem(passphrase: bytes = b"") -> str:
    how = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return PRIVATE.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how).decode()


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    server = Cloud()
    yield server
    server.close()


@pytest.mark.asyncio
async def test_google_cloud_storage_by_hmac_key_and_by_service_account(cloud: Cloud) -> None:
    keys = {"key_id": "GOOGKEY", "secret_key": KEY, "bucket": BUCKET}
    found = await tried("gcs", keys, cloud.url)
    assert (found.ok, found.reached) == (True, f"{cloud.url}/{BUCKET}"), found
    wrong = await tried("gcs", {**keys, "secret_key": KEY[::-1]}, cloud.url)
    assert (wrong.ok, wrong.message) == (False, "It answered 403 AuthenticationFailed. Check the keys.")
    account = {"client_email": "a@b", "private_key": pem(), "token_uri": f"{cloud.url}/token", "project_id": "p"}
    for data, path in (
        ({"service_account_json": json.dumps(account), "bucket": BUCKET}, "/storage/v1/b/orders/o?maxResults=1"),
        (account, "/storage/v1/b?project=p"),
    ):
        found = await tried("gcs", data, cloud.url)
        assert (found.ok, found.reached, cloud.asked[-1].path) == (True, cloud.url, path), found
    signed_in = await tried("service_account", account)
    assert (signed_in.ok, signed_in.message) == (True, "It issued a token for a@b.")


@pytest.mark.asyncio
async def test_azure_by_key_signature_connection_string_and_application(cloud: Cloud) -> None:
    account = {"account_name": "acme", "account_key": AZURE_KEY}
    text = f"DefaultEndpointsProtocol=http;AccountName=acme;AccountKey={AZURE_KEY};BlobEndpoint={cloud.url}/"
    application = {"tenant_id": "acme", "client_id": "c", "client_secret": KEY, "authority": cloud.url}
    for data in (
        account,
        {"connection_string": text},
        {"account_name": "acme", "sas_token": "?sv=2021&sig=right"},
        {**application, "account_name": "acme"},
    ):
        found = await tried("azure", data, cloud.url)
        assert (found.ok, found.reached, found.message) == (True, cloud.url, "Listed the containers."), found
    other = b64encode(b"another key of the account, wrong").decode()
    wrong = await tried("azure", {**account, "account_key": other}, cloud.url)
    assert (wrong.ok, wrong.message) == (False, "It answered 403 AuthenticationFailed. Check the keys.")
    broken = await tried("azure", {**account, "account_key": "not base64"}, cloud.url)
    assert (broken.ok, "is not in base64" in broken.message) == (False, True)
    alone = await tried("azure", application)
    assert (alone.ok, "issued a token" in alone.message) == (True, True)


@pytest.mark.asyncio
async def test_snowflake_by_key_pair_and_what_a_password_proves(cloud: Cloud) -> None:
    data = {"account": "acme-eu1.eu-central-1", "user": "loader", "private_key": pem(), "warehouse": "LOAD"}
    found = await tried("snowflake", data, cloud.url)
    assert (found.ok, found.reached, found.message) == (True, cloud.url, "Signed in as LOADER.")
    assert json.loads(cloud.asked[-1].body)["warehouse"] == "LOAD"
    locked = {**data, "private_key": pem(b"open sesame"), "private_key_passphrase": "open sesame"}
    assert (await tried("snowflake", locked, cloud.url)).ok
    other = await tried("snowflake", {**data, "user": "mallory"}, cloud.url)
    assert (other.ok, other.message) == (False, "It answered 403 AuthenticationFailed. Check the keys.")
    broken = await tried("snowflake", {**data, "private_key": "none"}, cloud.url)
    assert (broken.ok, "no private key in PEM" in broken.message) == (False, True)
    password = await tried("snowflake", {"account": "acme", "user": "loader", "password": KEY}, cloud.url)
    assert (password.ok, password.reached) == (None, cloud.url)
    assert "were not tried" in password.message
    assert KEY not in str(cloud.asked[-1])
