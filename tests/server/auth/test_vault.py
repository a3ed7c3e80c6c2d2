"""Credentials: sealed at rest, never shown, opened only for a held lease."""

from __future__ import annotations

import sqlite3
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from noetl.model.errors import CredentialUnavailable, InvalidInput
from noetl.server.auth.stored_credential import open_credential
from noetl.server.auth.vault import Vault, keys_of
from noetl.stores.memory.tables import Tables
from noetl.stores.memory.team import MemoryTeam
from noetl.wiring.local_credentials import local_credentials
from tests.server.serving import ONE, Served, in_process, places, playbook

KEY, OTHER = bytes(range(32)), bytes(32)
SECRET = "s3cret-value-of-the-database"
ADDRESS = f"postgresql://loader:{SECRET}@db.local/sales"


def memory() -> MemoryTeam:
    return MemoryTeam(Tables())


@pytest.mark.asyncio
async def test_what_is_sealed_is_opened_by_its_name_and_key_only() -> None:
    vault, team = Vault([KEY]), memory()
    sealed = await vault.seal(team, "pg", {"dsn": ADDRESS}, 1)
    assert SECRET.encode() not in sealed
    assert await vault.open(team, "pg", sealed) == {"dsn": ADDRESS}
    assert await Vault([OTHER, KEY]).open(team, "pg", sealed) == {"dsn": ADDRESS}
    assert await vault.seal(team, "pg", {"dsn": ADDRESS}, 2) != sealed
    assert len(await team.data_keys()) == 1
    for name, data, by in (
        ("other", sealed, vault),
        ("pg", sealed[:-1] + b"x", vault),
        ("pg", b"", vault),
        ("pg", sealed, Vault([OTHER])),
    ):
        with pytest.raises(InvalidInput):
            await by.open(team, name, data)


@pytest.mark.asyncio
async def test_a_rotation_wraps_the_data_keys_again_and_no_credential() -> None:
    team, running = memory(), Vault([KEY])
    sealed = {f"c{at}": await running.seal(team, f"c{at}", {"n": at}, 1) for at in range(10_000)}
    assert len(await team.data_keys()) == 1
    both, new = Vault([OTHER, KEY]), Vault([OTHER])
    with pytest.raises(InvalidInput, match="which this process does not have"):
        await new.rotate(team)
    assert [await both.rotate(team), await both.rotate(team)] == [1, 0]
    assert both.rotations == 2
    # A server that runs with the old key goes on; one that starts needs the new one.
    for name in ("c0", "c9999"):
        at = int(name[1:])
        assert await running.open(team, name, sealed[name]) == {"n": at}
        assert await new.open(team, name, sealed[name]) == {"n": at}
        with pytest.raises(InvalidInput):
            await Vault([KEY]).open(team, name, sealed[name])


@pytest.mark.asyncio
async def test_tasks_use_secrets_while_the_key_of_the_store_is_rotated(tmp_path: Path) -> None:
    text = playbook(
        "  - step: use\n    loop: {in: '{{ range(40) | list }}', iterator: n, mode: parallel}\n"
        "    tool: {kind: python, input: {t: '{{ keychain.api.token }}'}, code: 'result = len(t)'}\n",
        keychain=[{"name": "api"}],
    )
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        await served.json("PUT", "/api/credentials/api", {"data": {"token": SECRET}})
        started = [await served.start(text) for _ in range(3)]
        masters = set()
        async with local_credentials(places(tmp_path), "test") as local:
            for _ in range(5):
                masters.add((await local.rotate_keys()).master)
                started.append(await served.start(text))
        for one in started:
            assert (await served.until(one, "completed", "failed"))["result"]["results"] == [len(SECRET)] * 40
        await served.json("PUT", "/api/credentials/more", {"data": {"token": "another"}})
    assert len(masters) == 5
    async with in_process(tmp_path) as served:  # with the last key
        row = await served.json("GET", "/api/credentials/api")
        assert row["fields"] == ["token"]
        assert (await served.json("GET", "/api/credentials/more"))["fields"] == ["token"]
        keys = await served.json("GET", "/api/keys")
        assert [one["is_current"] for one in keys["keys"]] == [True]
        rotated = await served.json("POST", "/api/keys/rotate", {})
        assert (rotated["rotated"], rotated["master"] != keys["master"]) == (1, True)
        assert (await served.json("GET", "/api/keys"))["master"] == rotated["master"]


def test_keys_are_read_from_a_setting() -> None:
    text = urlsafe_b64encode(KEY).decode()
    assert keys_of(text.rstrip("=") + ", " + urlsafe_b64encode(OTHER).decode()) == [KEY, OTHER]
    for bad in ("", "abc", "!!", text + ","):
        with pytest.raises(InvalidInput):
            keys_of(bad)


@pytest.mark.asyncio
async def test_a_sealed_credential_without_a_key_says_what_is_missing(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await served.http.put("/api/credentials/pg", json={"kind": "postgres", "data": {"dsn": ADDRESS}})
        team = served.services.team
        with pytest.raises(CredentialUnavailable, match="`pg` is encrypted, and this server has no key"):
            await open_credential(team, None, "pg")
        with pytest.raises(KeyError):
            await open_credential(team, None, "other")


async def leased(served: Served, worker: str = "w") -> dict[str, Any]:
    await served.json("POST", "/api/worker/hello", {"worker": worker, "acks": False})
    answer = await served.json("POST", "/api/worker/claim", {"id": worker, "worker": worker})
    lease: dict[str, Any] = answer["leases"][0]
    return lease


@pytest.mark.asyncio
async def test_a_credential_is_kept_sealed_and_given_to_whoever_holds_a_lease(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        put = await served.http.put("/api/credentials/pg", json={"kind": "postgres", "data": {"dsn": ADDRESS}})
        assert put.status_code == 200
        assert SECRET not in put.text
        listed = await served.http.get("/api/credentials")
        assert listed.json()["credentials"][0]["name"] == "pg"
        assert SECRET not in listed.text
        await served.start(ONE.replace("workflow:", "keychain: [{name: pg}, {name: none}]\nworkflow:"))
        lease = await leased(served)
        held = [lease["work"]["work_id"], lease["epoch"]]
        given = await served.json("POST", "/api/worker/credential", {"name": "pg", "worker": "w", "work": held})
        assert given["data"] == {"dsn": ADDRESS}
        await served.json("POST", "/api/worker/hello", {"worker": "thief"})
        for worker, work in (("thief", held), ("w", [held[0], held[1] + 1]), ("w", ["1:x#1", 1])):
            await served.json("POST", "/api/worker/credential", {"name": "pg", "worker": worker, "work": work}, 403)
        await served.json("POST", "/api/worker/credential", {"name": "none", "worker": "w", "work": held}, 404)
        assert SECRET not in (await served.http.get("/api/audit")).text
        await served.json("DELETE", "/api/credentials/pg")
        await served.json("DELETE", "/api/credentials/pg", None, 404)
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0
    for file in tmp_path.glob("noetl.db*"):
        assert SECRET.encode() not in file.read_bytes()
    assert sqlite3.connect(tmp_path / "noetl.db").execute("SELECT count(*) FROM audit").fetchone()[0] > 0


@pytest.mark.asyncio
async def test_the_worker_of_up_reads_stored_credentials(tmp_path: Path) -> None:
    text = playbook(
        "  - step: a\n    tool: {kind: noop, result: '{{ keychain.pg.user }}'}\n", keychain=[{"name": "pg"}]
    )
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        await served.http.put("/api/credentials/pg", json={"data": {"user": "ada-the-user"}})
        assert await served.embedded.credential("pg") == {"user": "ada-the-user"}
        with pytest.raises(KeyError):
            await served.embedded.credential("none")
        started = await served.start(text)
        found = await served.until(started, "completed", "failed")
        assert found["status"] == "completed", found


@pytest.mark.asyncio
async def test_blobs_are_put_and_read_on_the_strength_of_a_lease(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        started, other = await served.start(ONE), await served.start(ONE)
        lease = await leased(served)
        assert lease["work"]["execution_id"] == started
        ref = f"noetl://execution/{started}/step/one/task/t/run/1/attempt/1"
        given = {"work": lease["work"]["work_id"], "epoch": lease["epoch"], "worker": "w"}
        meta = '{"store":"db","content_type":"text/plain"}'
        put = await served.http.put("/api/blobs", params={**given, "ref": ref, "meta": meta}, content=b"x" * 100_000)
        assert put.status_code == 200, put.text
        got = await served.http.get("/api/blobs", params={**given, "ref": ref, "start": 99_990, "length": 5})
        assert (got.content, got.headers["x-noetl-meta"]) == (b"x" * 5, meta)
        foreign = ref.replace(started, other)
        for method in ("PUT", "GET"):
            answer = await served.http.request(method, "/api/blobs", params={**given, "ref": foreign}, content=b"x")
            assert answer.status_code == 403, answer.text
        for wrong in ({"epoch": 0}, {"worker": "v"}, {"work": f"{other}:one#1"}):
            answer = await served.http.get("/api/blobs", params={**given, "ref": ref, **wrong})
            assert answer.status_code in (403, 409), answer.text
        await served.json("GET", "/api/results/resolve?ref=file:///etc/passwd", None, 422)
        await served.json("GET", "/api/results/resolve", None, 404, params={"ref": foreign})


@pytest.mark.asyncio
async def test_a_large_result_is_resolved_by_reference(tmp_path: Path) -> None:
    code = "result = {'rows': list(range(50000))}"
    text = playbook(f'  - step: big\n    tool: {{kind: python, code: "{code}"}}\n')
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(text)
        found = await served.until(started, "completed")
        answer = await served.http.get("/api/results/resolve", params={"ref": found["result"]["ref"]})
        assert answer.json() == {"rows": list(range(50000))}


@pytest.mark.asyncio
async def test_the_keychain_of_a_playbook_is_listed_without_what_it_holds(tmp_path: Path) -> None:
    keychain = [
        {"name": "pg"},
        {"name": "crm", "kind": "oauth2", "credential": "crm_client", "token_url": "http://x", "client_secret": SECRET},
        {"name": "openai", "kind": "secret_manager", "map": {"api_key": "openai-key"}, "ttl_seconds": 60},
    ]
    text = playbook("  - step: a\n    tool: {kind: noop}\n", "keys", keychain=keychain)
    async with in_process(tmp_path) as served:
        body = {"kind": "postgres", "data": {"dsn": ADDRESS}, "about": {"expires_at": 77}}
        await served.http.put("/api/credentials/pg", json=body)
        started = await served.start(text)
        answer = await served.http.get(f"/api/keychain/{started}")
        assert SECRET not in answer.text
        pg, crm, openai = answer.json()["entries"]
        assert (pg["name"], pg["kind"], pg["stored"], pg["version"], pg["expires_at"]) == (
            "pg",
            "postgres",
            True,
            1,
            77,
        )
        assert (crm["credential"], crm["stored"], crm["fields"]) == (
            "crm_client",
            False,
            ["client_secret", "token_url"],
        )
        assert (openai["kind"], openai["ttl_seconds"]) == ("secret_manager", 60)
        for query in (f"execution_id={started}", "path=test/keys", "path=test/keys&version=1"):
            assert (await served.json("GET", f"/api/keychain?{query}"))["entries"] == answer.json()["entries"]
        for query, status in (("", 422), (f"path=x&execution_id={started}", 422), ("path=no/such", 404)):
            await served.json("GET", f"/api/keychain?{query}", None, status)
        await served.json("GET", "/api/keychain/5", None, 404)
