"""Files of the web UI: where and how they are served; sessions by token."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from noetl.server import screen
from noetl.server.screen import PLACES
from noetl.settings import ServerSettings
from tests.server.serving import in_process, secret

UI = Path(__file__).parents[3] / "ui"
TOKEN = ServerSettings(auth="token")
POLICY = "script-src 'self'"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>NoETL</title>")
    (folder / "theme.js").write_text("1")
    (folder / "assets" / "app-1a2b.js").write_text("first()")
    (folder / "assets" / "app-1a2b.js.gz").write_bytes(gzip.compress(b"first()"))
    monkeypatch.setattr(screen.Screen.__init__, "__defaults__", (folder,))
    return folder


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen.Screen.__init__, "__defaults__", (tmp_path / "nothing",))


@pytest.mark.asyncio
@pytest.mark.usefixtures("built")
async def test_every_place_of_the_ui_is_the_page_and_each_asset_is_kept(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for path in ("/", *(f"/{place}" for place in PLACES), "/executions/1?at=3", "/playbooks/a/b.c/d"):
            answer = await served.http.get(path)
            assert answer.status_code == 200, path
            assert answer.headers["content-type"].startswith("text/html")
            assert answer.headers["cache-control"] == "no-cache"
            assert POLICY in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
        asset = await served.http.get("/assets/app-1a2b.js")
        assert (asset.text, asset.headers["content-encoding"]) == ("first()", "gzip")
        assert "immutable" in asset.headers["cache-control"]
        assert "javascript" in asset.headers["content-type"]
        plain = await served.http.get("/assets/app-1a2b.js", headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert (await served.http.get("/theme.js")).headers["cache-control"] == "no-cache"


@pytest.mark.asyncio
@pytest.mark.usefixtures("built")
async def test_what_is_no_place_of_the_ui_stays_a_problem(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for path in (
            "/nowhere",
            "/assets/",
            "/assets/../index.html",
            "/assets/%2e%2e/index.html",
            "/api/nothing",
            "/api",
        ):
            answer = await served.http.get(path)
            assert answer.status_code == 404, path
            assert answer.headers["content-type"] == "application/problem+json"
            assert POLICY not in answer.headers["content-security-policy"]
        assert (await served.http.post("/executions/1")).status_code == 404
        api = await served.http.get("/api/executions")
        assert POLICY not in api.headers["content-security-policy"]
        assert api.headers["cache-control"] == "no-store"


@pytest.mark.asyncio
@pytest.mark.usefixtures("built")
async def test_a_browser_at_an_unknown_address_gets_the_page_that_helps_to_find(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for path, kind in (("/nowhere/at/all", "text/html"), ("/api/nothing", "application/problem+json")):
            answer = await served.http.get(path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
            assert answer.status_code == 404
            assert answer.headers["content-type"].startswith(kind)


@pytest.mark.asyncio
@pytest.mark.usefixtures("unbuilt")
async def test_a_server_without_a_build_says_how_to_make_one(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        text = (await served.http.get("/")).text
        assert "make ui" in text
        assert "<script" not in text
        assert (await served.http.get("/executions")).status_code == 404


@pytest.mark.asyncio
async def test_a_token_signs_a_browser_in_with_its_role_until_it_signs_out(tmp_path: Path) -> None:
    operator = await secret(tmp_path, "operator", "night")
    async with in_process(tmp_path, TOKEN) as served:
        assert (await served.http.post("/api/session", json={"token": operator[:-1]})).status_code == 401
        assert (await served.http.post("/api/session", json={})).status_code == 401
        answer = await served.http.post("/api/session", json={"token": operator})
        me, cookie = answer.json(), answer.headers["set-cookie"]
        assert (me["name"], me["role"], me["kind"]) == ("browser of night", "operator", "session")
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert operator not in cookie
        browser = {"Cookie": cookie.partition(";")[0]}
        assert (await served.http.get("/api/me", headers=browser)).json()["csrf"] == me["csrf"]
        assert (await served.http.get("/api/tokens", headers=browser)).status_code == 403
        start = {"path": "none"}
        refused = await served.http.post("/api/execute", json=start, headers=browser)
        assert (refused.status_code, refused.json()["type"].rpartition("#")[2]) == (403, "csrf")
        whole = {**browser, "X-CSRF-Token": me["csrf"]}
        assert (await served.http.post("/api/execute", json=start, headers=whole)).status_code == 404
        assert (await served.http.delete("/api/session", headers=whole)).json() == {"removed": 1}
        assert (await served.http.get("/api/me", headers=browser)).status_code == 401
        assert (await served.http.get("/api/me", headers={"Authorization": f"Bearer {operator}"})).status_code == 200


@pytest.mark.asyncio
async def test_a_revoked_token_takes_its_browsers_with_it(tmp_path: Path) -> None:
    admin, viewer = [await secret(tmp_path, role, role) for role in ("admin", "viewer")]
    async with in_process(tmp_path, TOKEN) as served:
        whole = {"Authorization": f"Bearer {admin}"}
        answer = await served.http.post("/api/session", json={"token": viewer})
        browser = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
        assert (await served.http.get("/api/executions", headers=browser)).status_code == 200
        rows = (await served.http.get("/api/tokens", headers=whole)).json()["tokens"]
        (token_id,) = [one["token_id"] for one in rows if one["name"] == "viewer"]
        assert "browser of viewer" in {one["name"] for one in rows}
        await served.http.delete(f"/api/tokens/{token_id}", headers=whole)
        assert (await served.http.get("/api/executions", headers=browser)).status_code == 401


@pytest.mark.asyncio
async def test_the_sign_in_link_gives_the_role_of_its_token_and_leaves_the_address(tmp_path: Path) -> None:
    viewer = await secret(tmp_path, "viewer", "v")
    async with in_process(tmp_path, TOKEN) as served:
        answer = await served.http.get("/", params={"token": viewer})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        browser = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
        assert (await served.http.get("/api/me", headers=browser)).json()["role"] == "viewer"
        wrong: httpx.Response = await served.http.get("/?token=wrong")
        assert wrong.status_code == 401


def _made(script: str) -> str:
    code = f"import sys; sys.path.insert(0, 'scripts'); import {script}; print({script}.text(), end='')"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=UI.parent, check=True, capture_output=True, text=True
    ).stdout


def test_the_words_of_the_ui_are_those_of_the_glossary() -> None:
    kept = (UI / "src" / "words" / "glossary.ts").read_text()
    assert _made("ui_glossary") == kept, "The glossary has changed: run `make ui-types`."
    assert '"step-run": "One run of a step for a token.",' in kept


def test_the_types_of_the_ui_are_those_of_the_api() -> None:
    kept = (UI / "src" / "api" / "openapi.json").read_text()
    assert _made("ui_types") == kept, "The API has changed: run `make ui-types`."
    types = (UI / "src" / "api" / "schema.d.ts").read_text()
    for path in ("/api/executions", "/api/session", "/api/me"):
        assert f'"{path}"' in types


def test_no_registry_is_named_in_the_lock_file() -> None:
    assert '"resolved"' not in (UI / "package-lock.json").read_text()
