"""Tokens: life cycle, secrets, access; addresses and worker names they guard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from noetl.model.errors import InvalidInput
from noetl.server.auth.gate import digest, is_loopback, needs_token
from noetl.settings import ServerSettings
from noetl.wire.session import Ack, Claim, Hello, Leases, Refused, Welcome
from tests.server.http.test_worker_socket import claimed, done, held
from tests.server.serving import FAILS, ONE, Worker, bearer, in_process, listening, secret, session

TOKEN = ServerSettings(auth="token")


@pytest.mark.parametrize(
    ("mode", "host", "has", "asks"),
    [
        ("none", "127.0.0.1", False, False),
        ("none", "::1", True, False),
        ("none", "localhost", False, False),
        ("auto", "127.0.0.1", False, True),
        ("auto", "::1", False, True),
        ("auto", "localhost", True, True),
        ("token", "127.0.0.1", True, True),
        ("auto", "0.0.0.0", True, True),
        ("token", "10.1.2.3", True, True),
    ],
)
def test_where_a_server_asks_for_tokens(mode: str, host: str, has: bool, asks: bool) -> None:
    assert needs_token(mode, host, has_tokens=has, option="--store x") is asks


@pytest.mark.parametrize(
    ("mode", "host", "has"),
    [("none", "0.0.0.0", True), ("auto", "0.0.0.0", False), ("token", "127.0.0.1", False), ("maybe", "::1", True)],
)
def test_a_server_that_others_reach_does_not_start_without_tokens(mode: str, host: str, has: bool) -> None:
    with pytest.raises(InvalidInput) as told:
        needs_token(mode, host, has_tokens=has, option="--store x")
    assert "token" in str(told.value)


def test_only_this_machine_is_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example.com", "")))


@pytest.mark.asyncio
async def test_a_token_is_made_shown_once_listed_and_revoked(tmp_path: Path) -> None:
    admin = await secret(tmp_path, "admin")
    async with in_process(tmp_path, TOKEN) as served:
        made_one = await served.json(
            "POST", "/api/tokens", {"role": "viewer", "name": "ada"}, 201, headers=bearer(admin)
        )
        viewer = bearer(made_one["secret"])
        await served.json("GET", "/api/executions", headers=viewer)
        listed = await served.http.get("/api/tokens", headers=bearer(admin))
        assert made_one["secret"] not in listed.text
        assert digest(made_one["secret"]) not in listed.text
        assert {token["name"] for token in listed.json()["tokens"]} == {"admin", "ada"}
        await served.json("DELETE", f"/api/tokens/{made_one['token_id']}", headers=bearer(admin))
        told = await served.json("GET", "/api/executions", None, 401, headers=viewer)
        assert "revoked" in told["detail"]
        entries = (await served.json("GET", "/api/audit", headers=bearer(admin)))["entries"]
        assert [(one["actor"], one["action"]) for one in entries] == [
            ("admin", "token.revoke"),
            ("admin", "token.create"),
        ]
        assert made_one["secret"] not in str(entries)
        await served.json("POST", "/api/tokens", {"role": "king"}, 400, headers=bearer(admin))


@pytest.mark.asyncio
async def test_an_expired_token_is_refused(tmp_path: Path) -> None:
    await secret(tmp_path, "admin")
    old = await secret(tmp_path, "viewer", "old", expires_s=1)
    async with in_process(tmp_path, TOKEN) as served:
        assert "expired" in (await served.json("GET", "/api/executions", None, 401, headers=bearer(old)))["detail"]


@pytest.mark.asyncio
async def test_an_operator_may_not_bring_a_playbook(tmp_path: Path) -> None:
    operator = await secret(tmp_path, "operator")
    async with in_process(tmp_path, TOKEN) as served:
        await served.json("POST", "/api/execute", {"content": ONE}, 403, headers=bearer(operator))


@pytest.mark.asyncio
async def test_workers_with_two_tokens_are_two_workers_whatever_they_call_themselves(tmp_path: Path) -> None:
    admin, one, two = [
        await secret(tmp_path, role, f"{role}{n}") for n, role in enumerate(("admin", "worker", "worker"))
    ]
    async with listening(tmp_path, TOKEN) as served:
        served.http.headers.update(bearer(admin))
        await served.start(ONE)
        async with session(served, "same", token=one) as first, session(served, "same", token=two) as second:
            lease = await claimed(first)
            await first.send(Ack((held(lease),)))
            assert (await second.leases(done(lease, number=5))).status == "late"
            assert (await second.leases(done(lease))).status == "late"  # under the id that the first will use
            assert (await first.leases(done(lease))).status == "applied"


@pytest.mark.asyncio
async def test_a_worker_may_give_its_token_in_its_hello_and_only_workers_come_in(tmp_path: Path) -> None:
    viewer, worker = await secret(tmp_path, "viewer"), await secret(tmp_path, "worker")
    async with listening(tmp_path, TOKEN) as served:
        url = served.url.replace("http", "ws") + "/api/worker/session"
        for token, kind in ((worker, Welcome), (viewer, Refused), ("nonsense", Refused), (None, Refused)):
            async with connect(url) as socket:
                assert isinstance(await Worker(socket).ask(Hello("w", token=token)), kind)


@pytest.mark.asyncio
async def test_a_token_for_a_pool_is_for_that_pool(tmp_path: Path) -> None:
    bound = await secret(tmp_path, "worker", pool="gpu")
    async with listening(tmp_path, TOKEN) as served:
        url = served.url.replace("http", "ws") + "/api/worker/session"
        async with connect(url, additional_headers=bearer(bound)) as socket:
            assert isinstance(await Worker(socket).ask(Hello("w")), Refused)
        async with session(served, "w", token=bound, pools=("gpu",)) as worker:
            assert isinstance(await worker.ask(Claim("c")), Leases)
        lease = await served.http.post("/queue/lease", json={"worker_id": "w", "pool": "cpu"}, headers=bearer(bound))
        assert lease.status_code == 403


FORWARDED = [
    ("Forwarded", "for=192.0.2.1"),
    ("X-Forwarded-For", "192.0.2.1"),
    ("X-Forwarded-Host", "noetl.example"),
    ("x-forwarded-proto", "https"),
    ("X-Forwarded-Anything", ""),
    ("Via", "1.1 proxy"),
    ("X-Real-IP", "127.0.0.1"),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("name", "value"), FORWARDED)
async def test_a_request_through_a_proxy_is_never_the_local_admin(tmp_path: Path, name: str, value: str) -> None:
    viewer, worker = await secret(tmp_path, "viewer"), await secret(tmp_path, "worker")
    async with listening(tmp_path, ServerSettings(auth="none")) as served:
        await served.json("GET", "/api/tokens")  # from this machine
        for method, path in (("GET", "/api/executions"), ("GET", "/api/tokens"), ("POST", "/api/execute")):
            told = await served.json(method, path, None, 401, headers={name: value})
            assert "proxy" in told["detail"]
        assert (await served.http.get("/health", headers={name: value})).status_code == 200
        await served.json("GET", "/api/executions", headers={name: value, **bearer(viewer)})
        await served.json("GET", "/api/tokens", None, 403, headers={name: value, **bearer(viewer)})
        url = served.url.replace("http", "ws") + "/api/worker/session"
        for token, kind in ((None, Refused), (worker, Welcome)):
            async with connect(url, additional_headers={name: value}) as socket:
                assert isinstance(await Worker(socket).ask(Hello("w", token=token)), kind)


@pytest.mark.asyncio
async def test_an_operator_forks_retries_and_replays_but_changes_nothing(tmp_path: Path) -> None:
    operator, editor = bearer(await secret(tmp_path, "operator")), bearer(await secret(tmp_path, "editor"))
    async with in_process(tmp_path, TOKEN) as served, served.embedded.run_worker(""):
        served.http.headers.update(editor)
        failed = await served.start(FAILS)
        await served.until(failed, "failed")
        place = f"/api/executions/{failed}"
        (letter,) = (await served.json("GET", "/api/dlq"))["letters"]
        replay = f"/api/dlq/{letter['message_id']}/replay"
        patch = {"patch": {"spec.code": "result = 7"}}
        changes: list[tuple[str, dict[str, Any]]] = [
            (f"{place}/fork", {"start": "bad", "ctx": {"n": 1}}),
            (f"{place}/fork", {"start": "bad", "workload": {"n": 1}}),
            (f"{place}/retry", {"ctx": {"n": 1}}),
            (replay, patch),
            (replay, {**patch, "dry_run": True}),
            ("/api/dlq/replay", {"execution_id": failed, **patch}),
        ]
        before = len((await served.json("GET", "/api/executions"))["executions"])
        for path, body in changes:
            told = await served.json("POST", path, body, 403, headers=operator)
            assert "requires editor" in told["detail"]
        assert len((await served.json("GET", "/api/executions"))["executions"]) == before
        await served.json("POST", f"{place}/fork", {"start": "bad"}, 201, headers=operator)
        await served.json("POST", f"{place}/retry", {}, 201, headers=operator)
        for path, body in changes[:3]:
            await served.json("POST", path, body, 201, headers=editor)
        await served.json("POST", replay, patch, 200, headers=editor)
