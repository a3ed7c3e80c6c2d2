"""Sign in with OpenID Connect, at a real provider and at one that cheats."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import which
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from noetl.model.errors import InvalidInput
from noetl.settings import OidcSettings, ServerSettings, server_settings
from tests.server.serving import Served, bearer, in_process, secret

pytestmark = pytest.mark.asyncio
FOLDER = Path(__file__).parents[2] / "oidc"
BACK = "http://127.0.0.1/api/session/oidc/callback"
GROUPS = {"ada": ["admins", "team-a", "bad name"], "bob": ["team-a"], "eve": []}
ROLES = (("admins", "admin", ""), ("team-a", "editor", "team-a"))


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """Run the provider of npm; return its address."""
    if which("node") is None or not (FOLDER / "node_modules").is_dir():
        pytest.skip("the provider is not installed: run `npm ci` in tests/oidc")
    asked = json.dumps({"redirect": BACK, "groups": GROUPS})
    command = ["node", "provider.js", asked]
    with subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        try:
            for line in running.stdout:
                if line.startswith("http://"):
                    yield line.strip()
                    break
            else:
                pytest.fail("the provider has not started")
        finally:
            running.kill()


def settings(issuer: str, **more: Any) -> ServerSettings:
    given = {"scopes": "openid profile groups", "roles": ROLES, "client_secret": "secret-of-noetl", **more}
    return ServerSettings(auth="token", oidc=OidcSettings(issuer, "noetl", **given))


@asynccontextmanager
async def serving(folder: Path, given: ServerSettings) -> AsyncIterator[Served]:
    admin = await secret(folder, "admin", "root")
    async with in_process(folder, given) as served:
        yield served
        answer = await served.http.get("/api/executions", headers=bearer(admin))
        assert answer.status_code == 200  # whatever the provider does


async def sign_in_at(provider: httpx.AsyncClient, url: str, login: str) -> str:
    """Fill in the forms of the provider; return the address it sends back to."""
    answer = await provider.get(url)
    for _ in range(10):
        if answer.is_redirect:
            place = urljoin(str(answer.url), answer.headers["location"])
            if place.startswith(BACK):
                return place
            answer = await provider.get(place)
            continue
        form = re.search(r'action="([^"]+)"', answer.text)
        prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
        assert form is not None, answer.text
        assert prompt is not None
        body = {"prompt": prompt[1], "login": login, "password": "any"}
        answer = await provider.post(urljoin(str(answer.url), form[1]), data=body)
    pytest.fail("the provider does not send the browser back")


async def begin(served: Served) -> str:
    """Begin a sign-in with a cookie; return the address at the provider."""
    answer = await served.http.get("/api/session/oidc")
    assert answer.status_code == 303, answer.text
    assert "HttpOnly" in answer.headers["set-cookie"]
    return str(answer.headers["location"])


async def sign_in(served: Served, login: str) -> httpx.Response:
    async with httpx.AsyncClient() as browser:
        back = await sign_in_at(browser, await begin(served), login)
    return await served.http.get(back)


async def test_a_person_signs_in_with_the_roles_of_its_groups(tmp_path: Path, provider: str) -> None:
    async with serving(tmp_path, settings(provider)) as served:
        answer = await sign_in(served, "ada")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        me = (await served.http.get("/api/me")).json()
        assert (me["name"], me["role"], me["kind"]) == ("ada", "admin", "session")
        assert me["grants"] == [{"role": "editor", "namespace": "team-a/"}]
        users = (await served.http.get("/api/users")).json()["users"]
        assert [(one["name"], one["groups"], one["has_password"]) for one in users] == [
            ("ada", ["admins", "team-a"], False)
        ]
        assert users[0]["provider"] == f"{provider} sub-ada"
        entries = (await served.http.get("/api/audit?entity=ada")).json()["entries"]
        assert [one["action"] for one in entries] == ["session.begin", "user.create"]
        served.http.cookies.clear()
        await sign_in(served, "bob")
        me = (await served.http.get("/api/me")).json()
        assert (me["role"], me["grants"]) == ("", [{"role": "editor", "namespace": "team-a/"}])
        served.http.cookies.clear()
        await sign_in(served, "eve")
        assert (await served.http.get("/api/me")).json()["role"] == "none"
        assert (await served.http.get("/api/executions")).status_code == 403


async def test_a_code_is_used_once_and_only_by_the_browser_that_asked(tmp_path: Path, provider: str) -> None:
    async with serving(tmp_path, settings(provider)) as served:
        async with httpx.AsyncClient() as browser:
            back = await sign_in_at(browser, await begin(served), "ada")
        cookies = dict(served.http.cookies)
        served.http.cookies.clear()
        assert (await served.http.get(back)).status_code == 401  # another browser
        await begin(served)
        answer = await served.http.get(back)  # another sign-in: its `state` differs
        assert (answer.status_code, "state" in answer.text) == (401, True)
        served.http.cookies.clear()
        state, nonce, _ = cookies["noetl-oidc"].split(".")
        served.http.cookies.set("noetl-oidc", f"{state}.{nonce}.{'x' * 43}")
        assert (await served.http.get(back)).status_code == 401  # PKCE: another verifier
        assert (await served.http.get("/api/me")).status_code == 401
        assert await served.services.people.users() == []
        served.http.cookies.clear()
        for expected in (303, 401):  # a code is used once
            served.http.cookies.clear()
            served.http.cookies.set("noetl-oidc", cookies["noetl-oidc"])
            assert (await served.http.get(back)).status_code == expected


async def test_a_local_or_disabled_user_is_not_taken_over(tmp_path: Path, provider: str) -> None:
    async with serving(tmp_path, settings(provider)) as served:
        root = bearer(await secret(tmp_path, "admin", "other"))
        await served.json("POST", "/api/users", {"name": "ada", "grants": [{"role": "admin"}]}, headers=root)
        answer = await sign_in(served, "ada")
        assert (answer.status_code, "another one has this name" in answer.text) == (401, True)
        assert (await sign_in(served, "bob")).status_code == 303
        await served.json("PATCH", "/api/users/bob", {"disabled": True}, headers=root)
        served.http.cookies.clear()
        assert (await sign_in(served, "bob")).status_code == 401


async def test_the_provider_can_be_down(tmp_path: Path) -> None:
    async with serving(tmp_path, settings("http://127.0.0.1:9")) as served:
        answer = await served.http.get("/api/session/oidc")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "cannot be used" in answer.json()["detail"]


async def test_without_a_provider_there_is_no_such_sign_in(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for path in ("/api/session/oidc", "/api/session/oidc/callback?code=x&state=y"):
            assert (await served.http.get(path)).status_code == 404


class Cheat:
    """A provider whose answers the test chooses."""

    def __init__(self) -> None:
        self.issuer = ""
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.kid = "k1"
        self.described: dict[str, Any] = {}
        self.answer: Any = {}

    def token(
        self, nonce: str | None, key: Any = None, algorithm: str = "RS256", kid: str | None = None, **claims: Any
    ) -> str:
        given = {
            "iss": self.issuer, "aud": "noetl", "sub": "s", "iat": 1_000, "exp": 4_000_000_000, "nonce": nonce,
            "preferred_username": "mal", "groups": ["admins"], **claims,
        }  # fmt: skip
        kept = {name: value for name, value in given.items() if value is not None}
        signer = "" if algorithm == "none" else key or self.key
        return jwt.encode(kept, signer, algorithm, headers={"kid": kid or self.kid})

    async def describe(self, _: web.Request) -> web.Response:
        paths = {"authorization_endpoint": "/auth", "token_endpoint": "/token", "jwks_uri": "/keys"}
        found = {"issuer": self.issuer, **{name: self.issuer + path for name, path in paths.items()}}
        return web.json_response({**found, **self.described})

    async def keys(self, _: web.Request) -> web.Response:
        public = json.loads(RSAAlgorithm.to_jwk(self.key.public_key()))
        return web.json_response({"keys": [{**public, "kid": self.kid, "use": "sig"}]})

    async def exchange(self, _: web.Request) -> web.Response:
        if isinstance(self.answer, web.Response):
            return self.answer
        return web.json_response(self.answer)


@asynccontextmanager
async def cheating() -> AsyncIterator[Cheat]:
    cheat, app = Cheat(), web.Application()
    app.router.add_get("/.well-known/openid-configuration", cheat.describe)
    app.router.add_get("/keys", cheat.keys)
    app.router.add_post("/token", cheat.exchange)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    cheat.issuer = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield cheat
    finally:
        await runner.cleanup()


async def attempt(served: Served, cheat: Cheat, made: Any) -> httpx.Response:
    """Sign in at the cheat, which answers with what `made` makes of the nonce."""
    asked = parse_qs(urlsplit(await begin(served)).query)
    cheat.answer = made(asked["nonce"][0])
    return await served.http.get(BACK, params={"state": asked["state"][0], "code": "c"})


async def test_only_a_valid_id_token_is_believed(tmp_path: Path) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    async with cheating() as cheat, serving(tmp_path, settings(cheat.issuer)) as served:
        forged: dict[str, Any] = {
            "another key": lambda nonce: {"id_token": cheat.token(nonce, other)},
            "a key that is not published": lambda nonce: {"id_token": cheat.token(nonce, kid="k9")},
            "a secret": lambda nonce: {"id_token": cheat.token(nonce, "x" * 64, "HS256")},
            "no signature": lambda nonce: {"id_token": cheat.token(nonce, "", "none")},
            "another nonce": lambda _: {"id_token": cheat.token("x")},
            "no nonce": lambda _: {"id_token": cheat.token(None)},
            "another issuer": lambda nonce: {"id_token": cheat.token(nonce, iss="http://127.0.0.1")},
            "another audience": lambda nonce: {"id_token": cheat.token(nonce, aud="other")},
            "another client": lambda nonce: {"id_token": cheat.token(nonce, aud=["noetl", "x"], azp="x")},
            "an old one": lambda nonce: {"id_token": cheat.token(nonce, exp=1_000)},
            "no end": lambda nonce: {"id_token": cheat.token(nonce, exp=None)},
            "no subject": lambda nonce: {"id_token": cheat.token(nonce, sub=None)},
            "no name": lambda nonce: {"id_token": cheat.token(nonce, preferred_username=None)},
            "a name that is none": lambda nonce: {"id_token": cheat.token(nonce, preferred_username="a b")},
            "no token": lambda _: {},
            "a list": lambda _: {"id_token": ["x"]},
            "no JSON": lambda _: web.Response(text="<html>"),
            "too much": lambda _: web.Response(body=b" " * (2 << 20)),
            "a redirect": lambda _: web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"}),
            "an error": lambda _: web.json_response({"error": "invalid_grant"}, status=400),
        }
        for what, made in forged.items():
            answer = await attempt(served, cheat, made)
            assert answer.status_code in (401, 503), what
            assert not [one for one in answer.headers.get_list("set-cookie") if one.startswith("noetl-session")], what
        assert await served.services.people.users() == []
        answer = await attempt(served, cheat, lambda nonce: {"id_token": cheat.token(nonce, groups="admins")})
        assert answer.status_code == 303, answer.text


async def test_a_provider_that_describes_itself_badly_is_not_used(tmp_path: Path) -> None:
    for wrong in (
        {"issuer": "https://other.example"},
        {"token_endpoint": "http://198.51.100.1/token"},
        {"jwks_uri": 1},
        {"authorization_endpoint": "javascript:alert(1)"},
    ):
        async with cheating() as cheat, serving(tmp_path, settings(cheat.issuer)) as served:
            cheat.described = wrong
            assert (await served.http.get("/api/session/oidc")).status_code == 503, wrong


async def test_the_settings_of_a_provider() -> None:
    given = {
        "NOETL_OIDC_ISSUER": "https://id.example",
        "NOETL_OIDC_CLIENT_ID": "noetl",
        "NOETL_OIDC_ROLES": "admins=admin, team=a=editor@team-a/ ,*=viewer",
    }
    found = server_settings(given).oidc
    assert found is not None
    assert found.roles == (("admins", "admin", ""), ("team=a", "editor", "team-a/"), ("*", "viewer", ""))
    assert found.scopes == "openid profile email"
    assert server_settings({}).oidc is None
    for wrong in ("admins", "=admin", "x="):
        with pytest.raises(InvalidInput, match="GROUP=ROLE"):
            server_settings({**given, "NOETL_OIDC_ROLES": wrong})


@pytest.mark.parametrize(
    ("issuer", "more"),
    [("http://id.example", {}), ("ftp://id.example", {}), ("https://id.example", {"roles": (("a", "boss", ""),)})],
)
async def test_wrong_settings_of_a_provider_stop_the_start(tmp_path: Path, issuer: str, more: dict[str, Any]) -> None:
    await secret(tmp_path, "admin")
    with pytest.raises(InvalidInput):
        async with in_process(tmp_path, settings(issuer, **more)):
            pass
