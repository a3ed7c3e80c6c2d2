"""AWS Secrets Manager against a real server of moto, and the documented signature."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from noetl.model.errors import CredentialUnavailable
from noetl.worker.secrets.managers.access import Asked, request
from noetl.worker.secrets.managers.aws import sign
from noetl.worker.secrets.managers.registry import read_secret
from tests.unit.worker.secrets.managers.asking import accessing

KEYS = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "hush-hush-hush", "region": "eu-central-1"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    from moto.server import ThreadedMotoServer  # takes a second to load

    running = ThreadedMotoServer("127.0.0.1", 0)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


def test_the_signature_is_the_documented_one() -> None:
    at = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
    keys = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "")
    signed = sign("GET", "https://example.amazonaws.com/", {}, b"", keys, "us-east-1", "service", at)
    assert signed["Authorization"].endswith("5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")


@pytest.mark.asyncio
async def test_a_secret_is_read_by_version(server: str) -> None:
    async with accessing() as (access, secrets):
        created = await made(server, access, "orders", '{"password": "first-password"}')
        asked = Asked("orders", url=server, credential=KEYS)
        found = await read_secret("aws", asked, access)
        assert (found.value, found.version) == ('{"password": "first-password"}', created)
        by_stage = await read_secret("aws", Asked("orders", "AWSCURRENT", url=server, credential=KEYS), access)
        assert by_stage == found
        assert "first-password" not in secrets.text(f"{found.value}")
        with pytest.raises(CredentialUnavailable, match="check the name of the secret"):
            await read_secret("aws", Asked("none", url=server, credential=KEYS), access)


@pytest.mark.asyncio
async def test_the_keys_of_the_worker_are_used_without_a_credential(server: str) -> None:
    environment = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "hush-hush", "AWS_REGION": "us-east-1"}
    async with accessing(environment=environment) as (access, _):
        with pytest.raises(CredentialUnavailable, match="check the name"):
            await read_secret("aws", Asked("none", url=server), access)
    async with accessing() as (access, _):
        with pytest.raises(CredentialUnavailable, match="there are no keys of AWS"):
            await read_secret("aws", Asked("none", url=server), access)


async def made(server: str, access: object, name: str, value: str) -> str:
    """Create a secret with a signed request of our own; return its version."""
    import json

    from noetl.worker.secrets.managers.access import Access

    assert isinstance(access, Access)
    content = json.dumps({"Name": name, "SecretString": value, "ClientRequestToken": "a" * 32}).encode()
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "secretsmanager.CreateSecret"}
    keys = (KEYS["access_key_id"], KEYS["secret_access_key"], "")
    at = datetime.fromtimestamp(access.now() / 1000, UTC)
    signed = sign("POST", f"{server}/", headers, content, keys, KEYS["region"], "secretsmanager", at)
    answer = await access.ask(request(f"{server}/", signed, "POST", content), "no secret")
    return str(answer["VersionId"])
