"""Users over HTTP: sign-in, roles of groups, CSRF, and the end of sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from noetl.model.errors import InvalidInput
from noetl.server.auth.people.passwords import Passwords
from noetl.server.problems import Refusal
from noetl.settings import ServerSettings
from tests.server.serving import ONE, Served, bearer, in_process, listening, secret

pytestmark = pytest.mark.asyncio
PASSWORD = "correct horse battery"
MINE = ONE.replace("test/", "team-a/")


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    admin = await secret(tmp_path, "admin", "root")
    async with in_process(tmp_path, ServerSettings(auth="token")) as found:
        found.http.headers.update(bearer(admin))
        yield found


async def create(served: Served, name: str = "ada", **more: Any) -> None:
    await served.json("POST", "/api/users", {"name": name, "password": PASSWORD, **more})


async def browser(served: Served, name: str = "ada", password: str = PASSWORD) -> tuple[httpx.AsyncClient, Any]:
    """Sign in; return a client with the cookie and the answer."""
    client = httpx.AsyncClient(transport=served.http._transport, base_url="http://127.0.0.1")
    answer = await client.post("/api/session", json={"user": name, "password": password})
    if answer.is_success:
        client.headers["X-CSRF-Token"] = answer.json()["csrf"]
    return client, answer


async def test_a_user_signs_in_works_and_signs_out(served: Served) -> None:
    await create(served, grants=[{"role": "editor", "namespace": "team-a"}])
    ada, answer = await browser(served)
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=43200"))
    assert "Secure" not in cookie
    me = (await ada.get("/api/me")).json()
    assert (me["name"], me["role"], me["kind"]) == ("ada", "", "session")
    assert me["grants"] == [{"role": "editor", "namespace": "team-a/"}]
    assert me["expires_at"] > 0
    assert (await ada.post("/api/catalog", json={"content": MINE})).status_code == 201
    assert (await ada.post("/api/catalog", json={"content": ONE})).status_code == 403
    assert (await ada.get("/api/users")).status_code == 403
    entries = (await served.json("GET", "/api/audit?actor=ada"))["entries"]
    assert [one["action"] for one in entries] == ["playbook.register", "session.begin"]
    assert (await ada.delete("/api/session")).json() == {"removed": 1}
    assert (await ada.get("/api/me")).status_code == 401


async def test_a_cookie_over_tls_is_secure(served: Served) -> None:
    await create(served)
    body = {"user": "ada", "password": PASSWORD}
    answer = await served.http.post("/api/session", json=body, headers={"X-Forwarded-Proto": "https"})
    assert answer.headers["set-cookie"].endswith("; Secure")


async def test_a_change_with_a_cookie_needs_the_csrf_token(served: Served) -> None:
    await create(served, grants=[{"role": "admin"}])
    ada, _ = await browser(served)
    token = ada.headers.pop("X-CSRF-Token")
    for given in ({}, {"X-CSRF-Token": "x"}, {"X-CSRF-Token": token[:-1]}):
        answer = await ada.post("/api/catalog", json={"content": ONE}, headers=given)
        assert (answer.status_code, answer.json()["type"]) == (403, "about:blank#csrf")
    assert (await ada.get("/api/catalog")).json()["playbooks"] == []
    answer = await ada.post("/api/catalog", json={"content": ONE}, headers={"X-CSRF-Token": token})
    assert answer.status_code == 201
    foreign = {"X-CSRF-Token": token, "Origin": "https://evil.example"}
    assert (await ada.post("/api/catalog", json={"content": ONE}, headers=foreign)).status_code == 403


@pytest.mark.parametrize(("name", "password"), [("ada", "wrong"), ("bob", PASSWORD), ("none", PASSWORD), ("", "")])
async def test_a_wrong_sign_in_is_refused_without_a_reason(served: Served, name: str, password: str) -> None:
    await create(served)
    await create(served, "bob")
    await served.json("PATCH", "/api/users/bob", {"disabled": True})
    _, answer = await browser(served, name, password)
    assert answer.status_code == 401
    assert answer.json()["detail"] == "The name or the password is wrong, or the user is disabled."
    assert "set-cookie" not in answer.headers


async def test_roles_come_from_the_user_and_its_groups(served: Served) -> None:
    await served.json("PUT", "/api/groups/ops", {"grants": [{"role": "operator"}, {"role": "admin", "namespace": "x"}]})
    await create(served, groups=["ops"], grants=[{"role": "viewer"}])
    ada, answer = await browser(served)
    assert (answer.json()["role"], answer.json()["grants"]) == ("operator", [{"role": "admin", "namespace": "x/"}])
    await served.json("PUT", "/api/groups/ops", {"grants": []})
    assert (await ada.get("/api/me")).json()["role"] == "viewer"
    rows = (await served.json("GET", "/api/groups"))["groups"]
    assert [(row["name"], row["members"]) for row in rows] == [("ops", ["ada"])]
    await served.json("DELETE", "/api/groups/ops")
    await served.json("DELETE", "/api/groups/ops", status=404)
    assert (await served.json("GET", "/api/users/ada"))["groups"] == []
    await served.json("PATCH", "/api/users/ada", {"grants": [], "groups": []})
    assert (await ada.get("/api/me")).json()["role"] == "none"
    assert (await ada.get("/api/executions")).status_code == 403
    assert (await ada.get("/api/playbooks/" + "0" * 64)).status_code == 403


async def test_an_unknown_group_is_refused(served: Served) -> None:
    for name in ("ops", "dev"):
        await served.json("PUT", f"/api/groups/{name}", {"grants": []})
    refused = await served.json("POST", "/api/users", {"name": "ada", "groups": ["opps"]}, 400)
    text = "There is no group opps. Create it with `noetl group set opps`. The groups are dev, ops."
    assert refused["detail"] == text
    await create(served, groups=["ops", "ops"])
    assert (await served.json("PATCH", "/api/users/ada", {"groups": ["opps"]}, 400))["detail"] == text
    assert (await served.json("GET", "/api/users/ada"))["groups"] == ["ops"]


@pytest.mark.parametrize("end", ["disable", "password", "delete", "sign out"])
async def test_what_ends_a_session_ends_it_on_every_server(tmp_path: Path, end: str) -> None:
    """An open stream ends, and the next request is refused."""
    admin = await secret(tmp_path, "admin", "root")
    settings = ServerSettings(auth="token")
    async with listening(tmp_path, settings) as one, in_process(tmp_path, settings) as two:
        two.http.headers.update(bearer(admin))
        await create(two, grants=[{"role": "viewer"}])
        async with httpx.AsyncClient(base_url=one.url) as ada:
            me = (await ada.post("/api/session", json={"user": "ada", "password": PASSWORD})).json()
            async with ada.stream("GET", "/api/executions/stream") as stream:
                lines = stream.aiter_lines()
                await anext(lines)
                if end == "disable":
                    await two.json("PATCH", "/api/users/ada", {"disabled": True})
                elif end == "password":
                    await two.json("PATCH", "/api/users/ada", {"password": PASSWORD + "!"})
                elif end == "delete":
                    await two.json("DELETE", "/api/users/ada")
                else:
                    await ada.delete("/api/session", headers={"X-CSRF-Token": me["csrf"]})
                async with asyncio.timeout(30):
                    async for _ in lines:
                        pass
                    while (answer := await ada.get("/api/me")).status_code == 200:  # it is cached for half a second
                        await asyncio.sleep(0.02)
            assert answer.status_code == 401


async def test_users_alone_are_enough_to_start_a_server(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="none exists"):
        async with in_process(tmp_path, ServerSettings(auth="token")):
            pass
    async with in_process(tmp_path) as served:
        await create(served)
    async with in_process(tmp_path, ServerSettings(auth="token")) as served:
        _, answer = await browser(served)
        assert answer.status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": "x" * 101},
        {"name": "ada", "password": "short"},
        {"name": "ada", "grants": [{"role": "worker"}]},
        {"name": "ada", "grants": [{"role": "viewer", "namespace": "/"}]},
        {"name": "ada", "groups": ["a b"]},
    ],
)
async def test_a_bad_user_is_refused(served: Served, body: dict[str, Any]) -> None:
    answer = await served.http.post("/api/users", json=body)
    assert answer.status_code in (400, 422), answer.text
    assert (await served.json("GET", "/api/users"))["users"] == []


async def test_a_user_is_made_once_and_never_shows_its_password(served: Served) -> None:
    await create(served)
    await served.json("POST", "/api/users", {"name": "ada"}, 409)
    for path in ("/api/users", "/api/users/ada", "/api/audit"):
        text = str(await served.json("GET", path))
        assert "scrypt" not in text
        assert PASSWORD not in text
    await served.json("GET", "/api/users/none", status=404)
    await served.json("PATCH", "/api/users/none", {"disabled": True}, 404)
    await served.json("DELETE", "/api/users/none", status=404)


async def test_a_token_and_the_local_admin_see_themselves(served: Served, tmp_path: Path) -> None:
    me = await served.json("GET", "/api/me")
    assert (me["name"], me["role"], me["kind"], me["csrf"]) == ("root", "admin", "token", "")
    limited = await served.json("POST", "/api/tokens", {"role": "viewer", "namespaces": ["a/"]})
    me = await served.json("GET", "/api/me", headers=bearer(limited["secret"]))
    assert (me["role"], me["grants"]) == ("", [{"role": "viewer", "namespace": "a/"}])
    async with in_process(tmp_path / "other") as open_one:
        assert (await open_one.json("GET", "/api/me"))["kind"] == "local"


async def test_a_password_is_hashed_with_a_salt() -> None:
    passwords = Passwords()
    one, two = await passwords.hash(PASSWORD), await passwords.hash(PASSWORD)
    assert one != two
    assert await passwords.verify(PASSWORD, one)
    assert not await passwords.verify(PASSWORD + "x", one)
    assert not await passwords.verify("", "")
    assert not await passwords.verify("0" * 32, "")


async def test_only_so_many_sign_ins_wait() -> None:
    """A flood of wrong passwords cannot use up the processor."""
    passwords = Passwords(at_once=1, waiting=3)
    found = await asyncio.gather(*(passwords.verify("x", "") for _ in range(5)), return_exceptions=True)
    assert [isinstance(one, Refusal) for one in found] == [False, False, False, True, True]
    assert not await passwords.verify("x", "")
