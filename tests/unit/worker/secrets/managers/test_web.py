"""Vault, Google and Azure: a local server replays their documented exchange."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from noetl.model.errors import CredentialUnavailable
from noetl.worker.secrets.managers.access import Asked
from noetl.worker.secrets.managers.google import id_token
from noetl.worker.secrets.managers.registry import read_secret
from tests.tools.web import Web
from tests.unit.worker.secrets.managers.asking import accessing

pytestmark = pytest.mark.asyncio
VALUE = "s3cret-of-the-manager"


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    yield made
    made.close()


async def test_vault_gives_a_version_of_its_key_value_engine(web: Web) -> None:
    answer = {"data": {"data": {"password": VALUE}, "metadata": {"version": 3}}}
    web.pages["/v1/kv/data/orders"] = answer
    credential = {"token": "vault-token", "mount": "kv", "namespace": "team"}
    async with accessing() as (access, secrets):
        found = await read_secret("vault", Asked("orders", "3", url=web.url, credential=credential), access)
        assert (found.value, found.version) == ({"password": VALUE}, "3")
        assert VALUE not in secrets.text(f"got {VALUE}")
    (asked,) = web.asked
    assert asked.path == "/v1/kv/data/orders?version=3"
    assert (asked.headers["x-vault-token"], asked.headers["x-vault-namespace"]) == ("vault-token", "team")


async def test_vault_is_signed_in_to_by_approle(web: Web) -> None:
    web.pages["/v1/auth/approle/login"] = {"auth": {"client_token": "issued-token"}}
    web.pages["/v1/secret/data/orders"] = {"data": {"data": {"a": VALUE}, "metadata": {"version": 1}}}
    credential = {"role_id": "r", "secret_id": "hush-hush"}
    async with accessing(environment={"VAULT_ADDR": web.url}) as (access, _):
        await read_secret("openbao", Asked("orders", credential=credential), access)
    login, got = web.asked
    assert json.loads(login.body) == credential
    assert got.headers["x-vault-token"] == "issued-token"


async def test_what_the_worker_has_goes_to_no_address_of_a_playbook(web: Web) -> None:
    web.pages["/v1/secret/data/orders"] = {"data": {"data": {"a": VALUE}, "metadata": {"version": 1}}}
    async with accessing(environment={"VAULT_ADDR": f"{web.url}/", "VAULT_TOKEN": "its-own"}) as (access, _):
        await read_secret("vault", Asked("orders"), access)
        with pytest.raises(CredentialUnavailable, match="no token"):
            await read_secret("vault", Asked("orders", url=f"{web.url}/other"), access)
        with pytest.raises(CredentialUnavailable, match="`url` needs a credential"):
            await read_secret("google", Asked("orders", project="acme", url=web.url), access)
    assert [one.headers["x-vault-token"] for one in web.asked] == ["its-own"]


async def test_a_refusal_says_what_to_check_and_quotes_nothing(web: Web) -> None:
    async with accessing() as (access, _):
        for status, words in ((403, "check the credential"), (404, "check the name")):
            base = f"{web.url}/status/{status}#"
            with pytest.raises(CredentialUnavailable, match=words) as told:
                await read_secret("vault", Asked("orders", url=base, credential={"token": "hush-hush"}), access)
            assert "hush-hush" not in str(told.value)
            assert not told.value.retryable
        with pytest.raises(CredentialUnavailable, match="503") as told:
            await read_secret("azure", Asked("x", url=f"{web.url}/status/503#", credential={"token": "t"}), access)
        assert told.value.retryable


def key_pair() -> tuple[rsa.RSAPrivateKey, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key, pem.decode()


def claims_of(assertion: str, key: rsa.RSAPrivateKey) -> dict[str, Any]:
    """Verify the signature of an assertion and return its claims."""
    text, _, signature = assertion.rpartition(".")
    padded = signature + "=" * (-len(signature) % 4)
    key.public_key().verify(urlsafe_b64decode(padded), text.encode(), padding.PKCS1v15(), hashes.SHA256())
    claims = text.split(".")[1]
    found: dict[str, Any] = json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    return found


async def test_google_exchanges_a_signed_assertion_once(web: Web) -> None:
    key, pem = key_pair()
    account = {"client_email": "a@b", "private_key": pem, "token_uri": f"{web.url}/token", "project_id": "acme"}
    web.pages["/token"] = {"access_token": "issued", "expires_in": 3600}
    path = "projects/acme/secrets/orders/versions/latest"
    data = {"data": b64encode(VALUE.encode()).decode()}
    web.pages[f"/v1/{path}:access"] = {"name": "projects/1/secrets/orders/versions/7", "payload": data}
    asked = Asked("orders", url=web.url, credential={"service_account_json": json.dumps(account)})
    async with accessing() as (access, _):
        for _ in range(2):
            found = await read_secret("gcp", asked, access)
            assert (found.value, found.version) == (VALUE, "7")
    assert [one.path for one in web.asked] == ["/token", f"/v1/{path}:access", f"/v1/{path}:access"]
    form = parse_qs(web.asked[0].body.decode())
    claims = claims_of(form["assertion"][0], key)
    assert (claims["iss"], claims["scope"]) == ("a@b", "https://www.googleapis.com/auth/cloud-platform")
    assert web.asked[1].headers["authorization"] == "Bearer issued"


async def test_google_gives_an_id_token_for_an_audience(web: Web) -> None:
    key, pem = key_pair()
    web.pages["/token"] = {"id_token": "an.id.token"}
    account = {"client_email": "a@b", "private_key": pem, "token_uri": f"{web.url}/token"}
    async with accessing() as (access, _):
        assert (await id_token(account, "https://run.example.org", access))["token"] == "an.id.token"
    form = parse_qs(web.asked[0].body.decode())
    assert claims_of(form["assertion"][0], key)["target_audience"] == "https://run.example.org"


async def test_azure_signs_in_as_an_application(web: Web) -> None:
    web.pages["/acme/oauth2/v2.0/token"] = {"access_token": "issued", "expires_in": 3600}
    web.pages["/secrets/orders"] = {"value": VALUE, "id": f"{web.url}/secrets/orders/abc"}
    credential = {"tenant_id": "acme", "client_id": "c", "client_secret": "hush-hush", "authority": web.url}
    async with accessing() as (access, _):
        found = await read_secret("azure", Asked("orders", url=web.url, credential=credential), access)
    assert (found.value, found.version) == (VALUE, "abc")
    assert parse_qs(web.asked[0].body.decode())["scope"] == ["https://vault.azure.net/.default"]
    assert web.asked[1].headers["authorization"] == "Bearer issued"
