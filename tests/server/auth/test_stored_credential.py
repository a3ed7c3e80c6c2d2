"""Credentials as a server shows and tests them: names and use, no values."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.client.working import working
from tests.databases import server_address
from tests.server.serving import in_process, listening, playbook

pytestmark = pytest.mark.asyncio
SECRET = "s3cret-value-of-the-api"


def reader(name: str, auth: str) -> str:
    task = f"{{kind: python, auth: {auth}, code: 'result = len(auth[\"token\"])'}}"
    return playbook(f"  - step: a\n    tool: {task}\n", name)


async def test_a_credential_is_shown_with_its_use_and_without_values(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        await served.json("PUT", "/api/credentials/api", {"kind": "bearer", "data": {"token": SECRET}})
        await served.register(reader("other", "elsewhere"))
        started = await served.start(reader("mine", "api"))
        assert (await served.until(started, "completed", "failed"))["status"] == "completed"
        answer = await served.http.get("/api/credentials/api")
        found = answer.json()
        assert SECRET not in answer.text
        assert (found["kind"], found["fields"], found["playbooks"]) == ("bearer", ["token"], ["test/mine"])
        assert (found["used_by"], found["used_at"] > 0) == (started, True)
        uses = [one for one in await served.services.team.audited(entity="api") if one.action == "credential.use"]
        assert len(uses) == 1
        await served.json("GET", "/api/credentials/none", None, 404)


@pytest.mark.parametrize("is_remote", [False, True])
async def test_a_credential_that_no_key_opens_fails_its_task_as_other_credentials_do(
    tmp_path: Path, is_remote: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(tmp_path) as served, AsyncExitStack() as stack:
        await served.json("PUT", "/api/credentials/api", {"kind": "bearer", "data": {"token": SECRET}})
        row = await served.services.team.sealed_credential("api")
        assert row is not None
        await served.services.team.put_credential("api", "bearer", bytes(8) + row["sealed"][8:], {}, 2)
        if is_remote:
            await stack.enter_async_context(working(tmp_path / "w", served.url, name="w1"))
        else:
            await stack.enter_async_context(served.embedded.run_worker(""))
        started = await served.start(reader("mine", "api"))
        error = (await served.until(started, "completed", "failed"))["error"]
        assert (error["kind"], error["code"]) == ("auth", "CREDENTIAL")
        assert "`api` was sealed with a key that this server does not have" in error["message"]
        assert "Add that key to NOETL_ENCRYPTION_KEY" in error["message"]
    assert not [one for one in caplog.records if one.exc_info]


async def test_the_answer_to_a_put_says_when_the_credential_was_created(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for version in (1, 2):
            put = await served.json("PUT", "/api/credentials/api", {"kind": "bearer", "data": {"token": SECRET}})
            shown = await served.json("GET", "/api/credentials/api")
            assert put["version"] == version
            assert 0 < put["created_at"] <= put["updated_at"]
            assert {name: shown[name] for name in put} == put


async def test_a_server_connects_with_a_credential(tmp_path: Path) -> None:
    address = server_address()
    async with in_process(tmp_path) as served:
        await served.json("PUT", "/api/credentials/pg", {"kind": "postgres", "data": {"dsn": address}})
        found = await served.json("POST", "/api/credentials/pg/test", {})
        assert found["ok"] is True
        assert found["reached"].startswith("PostgreSQL ")
        assert "Signed in as noetl to the database postgres" in found["message"]
        await served.json("POST", "/api/credentials/none/test", {}, 404)


async def test_the_egress_rules_hold_for_tests(tmp_path: Path) -> None:
    async with in_process(tmp_path, egress_allow=("db.example.org",)) as served:
        await served.json("PUT", "/api/credentials/pg", {"kind": "postgres", "data": {"dsn": server_address()}})
        found = await served.json("POST", "/api/credentials/pg/test", {})
        assert (found["ok"], found["reached"]) == (False, "")
        assert "127.0.0.1" in found["message"]
