"""Credentials of work: declared, stored, and tokens of a real token server."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest
import pytest_asyncio

from noetl.clock import SteadyClock
from noetl.dsl.tree.playbook import Keychain, Value
from noetl.model.errors import CredentialUnavailable
from noetl.worker.cooperative import Cooperation
from noetl.worker.http.clients import HttpClient
from noetl.worker.secrets.keychain import KeyRing
from noetl.worker.secrets.managers.access import Access
from noetl.worker.secrets.oauth2 import Tokens
from noetl.worker.secrets.redact import Secrets
from tests.tools.web import Web
from tests.unit.worker.system import system

pytestmark = pytest.mark.asyncio


def entry(name: str, **fields: Any) -> Keychain:
    return Keychain(name, {key: Value(value) for key, value in fields.items()})


DECLARED = (
    entry("api"),
    entry("db", credential="pg_main"),
    entry("made", auth="{{ workload.which }}"),
    entry("gone"),
    entry("mixed", kind="api_key", credential="api", header="X-{{ workload.which }}"),
    entry("inner", kind="basic", username="ada", password="{{ keychain.api.token }}"),
    entry("a", token="{{ keychain.b.token }}"),
    entry("b", token="{{ keychain.a.token }}"),
    entry("odd", token="{{ workload.nothing }}"),
    entry(
        "many",
        kind="secret_manager",
        provider="google",
        map={"key": "api", "dsn": "projects/p/secrets/pg_main/versions/3"},
    ),
    entry("none", kind="secret_manager", map={"key": "no-such-secret"}),
)
STORED: dict[str, dict[str, Any]] = {
    "api": {"token": "t"}, "pg_main": {"dsn": "d"}, "made": {"token": "m"}, "other": {"token": "o"},
}  # fmt: skip


class Store:
    """Credentials by name, and which were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, name: str) -> Mapping[str, Any]:
        self.asked.append(name)
        return STORED[name]


class Clock(SteadyClock):
    """A clock that can be put forward and sleeps in no time."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead

    async def sleep(self, seconds: float) -> None:
        self.ahead += round(seconds * 1000)


def ring(
    store: Store | None = None,
    declared: tuple[Keychain, ...] = DECLARED,
    tokens: Tokens | None = None,
    client: HttpClient | None = None,
) -> KeyRing:
    names = {"workload": {"which": "other"}}
    made = tokens or Tokens(HttpClient().get, SteadyClock())
    secrets = Secrets()
    access = Access((client or HttpClient()).get, made, SteadyClock().now, secrets.learn)
    return KeyRing(declared, names, 1, store or Store(), made, secrets, Cooperation(), access)


async def test_only_what_is_read_is_resolved() -> None:
    store = Store()
    assert await ring(store).read([("keychain", "api", "token"), ("ctx", "db")]) == {"api": {"token": "t"}}
    assert store.asked == ["api"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("db", {"dsn": "d"}),
        ("made", {"token": "o"}),
        ("mixed", {"token": "t", "header": "X-other"}),
        ("inner", {"username": "ada", "password": "t"}),
        ("other", {"token": "o"}),  # stored, and not declared
    ],
)
async def test_an_entry_is_a_stored_credential_and_its_own_fields(name: str, value: Any) -> None:
    assert await ring().get(name) == value


async def test_one_that_is_not_there_is_left_out_of_templates() -> None:
    assert await ring().read([("keychain", "gone")]) == {}
    with pytest.raises(KeyError):
        await ring().get("gone")


async def test_no_credential_has_an_empty_name() -> None:
    async def resolve(name: str) -> Mapping[str, Any]:
        return {"token": "of a store of an earlier version"}

    found = ring()
    found._resolve = resolve
    assert await found.get("any")
    with pytest.raises(KeyError):
        await found.get("")


async def test_the_whole_keychain_is_what_is_declared() -> None:
    declared = DECLARED[:4]
    assert set(await ring(declared=declared).read([("keychain",)])) == {"api", "db", "made"}


async def test_entries_that_cannot_be_made_say_why() -> None:
    with pytest.raises(CredentialUnavailable, match="in a circle: a, b, a"):
        await ring().get("a")
    with pytest.raises(CredentialUnavailable, match=r"`keychain.odd.token`: .*nothing"):
        await ring().get("odd")


async def test_an_entry_with_a_map_has_a_field_for_each_secret() -> None:
    assert await ring().get("many") == {"key": "t", "dsn": "d"}
    with pytest.raises(CredentialUnavailable, match="`no-such-secret`, and no stored credential has that name"):
        await ring().get("none")


async def test_auth_as_a_map_may_name_a_credential() -> None:
    assert await ring().auth({"type": "postgres", "credential": "db", "sslmode": "require"}) == {
        "dsn": "d",
        "sslmode": "require",
    }
    assert await ring().auth({"token": "x"}) == {"token": "x"}
    with pytest.raises(CredentialUnavailable, match="no credential named 'unknown'"):
        await ring().auth({"credential": "unknown"})


# Tokens


@dataclass
class TokenServer:
    """Serves tokens for the right secret, and pages for the last token."""

    asked: list[tuple[dict[str, str], str]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)  # authorization headers of `/page`
    life: Any = 3600
    broken: int = 0  # answers 503 this often
    odd: str = ""  # at the beginning of a token

    def __post_init__(self) -> None:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                return

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self.give(*server.token(dict(parse_qsl(text)), self.headers.get("Authorization", "")))

            def do_GET(self) -> None:
                server.seen.append(self.headers.get("Authorization", ""))
                good = server.seen[-1] == f"Bearer token-{len(server.asked)}-{'x' * 20}"
                self.give(200 if good else 401, {"page": 1})

            def give(self, code: int, data: Any) -> None:
                content = json.dumps(data).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def token(self, form: dict[str, str], header: str) -> tuple[int, dict[str, Any]]:
        if self.broken:
            self.broken -= 1
            return 503, {}
        basic = b64encode(b"noetl:right-secret").decode()
        if form.get("client_secret") != "right-secret" and header != f"Basic {basic}":
            return 401, {"error": "invalid_client", "error_description": "unknown client"}
        self.asked.append((form, header))
        return 200, {
            "access_token": f"{self.odd}token-{len(self.asked)}-{'x' * 20}",
            "token_type": "Bearer",
            "expires_in": self.life,
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[TokenServer]:
    made = TokenServer()
    yield made
    made.close()


@pytest_asyncio.fixture
async def client() -> AsyncIterator[HttpClient]:
    made = HttpClient()
    yield made
    await made.close()


def crm(server: TokenServer, **more: Any) -> Keychain:
    given = {
        "kind": "oauth2",
        "token_url": f"{server.url}/token",
        "client_id": "noetl",
        "client_secret": "right-secret",
    }
    return entry("crm", **{**given, **more})


async def test_a_token_is_asked_for_once_and_again_when_it_ends(server: TokenServer, client: HttpClient) -> None:
    clock = Clock()
    tokens = Tokens(client.get, clock)
    keys = ring(declared=(crm(server, scope="read:all"),), tokens=tokens)
    found = await asyncio.gather(*(keys.get("crm") for _ in range(5)))
    assert {one["token"] for one in found} == {"token-1-" + "x" * 20}
    form = {
        "grant_type": "client_credentials",
        "client_id": "noetl",
        "client_secret": "right-secret",
        "scope": "read:all",
    }
    assert server.asked == [(form, "")]
    clock.ahead += 3_500_000
    assert (await keys.get("crm"))["token"].startswith("token-1-")
    clock.ahead += 80_000  # within the last half minute of its life
    assert (await keys.get("crm"))["token"].startswith("token-2-")


async def test_sharing_is_no_scope_and_a_secret_may_travel_in_the_header(
    server: TokenServer, client: HttpClient
) -> None:
    declared = (crm(server, scope="global", auth_method="basic", data={"audience": "crm"}),)
    keys = ring(declared=declared, tokens=Tokens(client.get, Clock()))
    await keys.get("crm")
    assert server.asked[0][0] == {"grant_type": "client_credentials", "audience": "crm"}


async def test_a_wrong_secret_is_told_without_the_secret(server: TokenServer, client: HttpClient) -> None:
    keys = ring(declared=(crm(server, client_secret="wrong-secret"),), tokens=Tokens(client.get, Clock()))
    with pytest.raises(CredentialUnavailable, match=r"answered 401 \(invalid_client: unknown client\)") as raised:
        await keys.get("crm")
    assert "wrong-secret" not in str(raised.value)
    assert not raised.value.retryable


async def test_a_server_that_is_busy_is_asked_again(server: TokenServer, client: HttpClient) -> None:
    server.broken = 2
    keys = ring(declared=(crm(server),), tokens=Tokens(client.get, Clock()))
    assert (await keys.get("crm"))["token"].startswith("token-1-")
    server.broken = 9
    other = ring(declared=(crm(server, client_id="two"),), tokens=Tokens(client.get, Clock()))
    with pytest.raises(CredentialUnavailable) as raised:
        await other.get("crm")
    assert raised.value.retryable


async def test_a_token_that_is_not_valid_unicode_fails_its_task_and_no_other(
    server: TokenServer, client: HttpClient
) -> None:
    server.odd = "\ud800"
    async with system() as run:
        run.running.pop().cancel()
        run.shared = replace(run.shared, http=client.get)
        run.worker()
        root = f"keychain: [{{name: crm, kind: oauth2, token_url: '{server.url}/token', client_id: noetl, client_secret: right-secret}}]\n"
        task = f"{{kind: http, url: '{server.url}/page', auth: crm}}"
        row = await run.run(f"- step: one\n  tool: {task}\n", root)
        assert (row["status"], row["error"]["kind"]) == ("failed", "auth")
        assert "is not valid Unicode" in row["error"]["message"]
        server.odd = ""
        row = await run.run(f"- step: one\n  tool: {task}\n", root)
        assert row["status"] == "completed", row


async def test_a_task_uses_the_token_and_renews_it_once_when_it_is_refused(
    server: TokenServer, client: HttpClient
) -> None:
    async with system() as run:
        run.running.pop().cancel()
        run.shared = replace(run.shared, http=client.get)
        run.worker()
        root = """
            keychain:
              - name: crm
                kind: oauth2
                token_url: "{{ workload.server }}/token"
                client_id: noetl
                client_secret: right-secret
            """
        flow = """
            - step: page
              tool: {kind: http, url: "{{ workload.server }}/page", auth: crm}
              next: again
            - step: again
              tool:
                - forget: {kind: http, url: "{{ workload.server }}/token", method: POST, form: {client_secret: right-secret}}
                - page: {kind: http, url: "{{ workload.server }}/page", credential: crm}
                - shown: {kind: noop, result: "{{ keychain.crm.token }}"}
            """
        execution = await run.start(flow, root, server=server.url)
        row = await run.ended(execution)
        assert row["status"] == "completed", row
        assert [seen.split("-")[1] for seen in server.seen] == ["1", "1", "3"]
        told = b"".join(map(msgspec.json.encode, await run.store.read(execution)))
        assert b"token-3-" not in told
        assert b"token-1-" not in told


async def test_a_task_whose_credential_cannot_be_had_says_so(server: TokenServer, client: HttpClient) -> None:
    async with system() as run:
        run.running.pop().cancel()
        run.shared = replace(run.shared, http=client.get)
        run.worker()
        root = f"keychain: [{{name: crm, kind: oauth2, token_url: '{server.url}/token', client_id: noetl, client_secret: wrong-one}}]\n"
        for task in (
            '{kind: http, url: "http://127.0.0.1:1/", auth: crm}',
            '{kind: noop, result: "{{ keychain.crm.token }}"}',
        ):
            row = await run.run(f"- step: one\n  tool: {task}\n", root)
            assert row["status"] == "failed"
            assert row["error"]["kind"] == "auth"
            assert "invalid_client" in row["error"]["message"]


async def test_each_kind_of_entry_has_its_fields() -> None:
    client, web = HttpClient(), Web(pages={"/value": {"data": {"user": "ada", "password": "hush-hush"}}})
    web.pages["/v1/secret/data/orders"] = {"data": {"data": {"password": "from-the-vault"}, "metadata": {"version": 1}}}
    try:
        keys = ring(
            client=client,
            declared=(
                entry("fixed", kind="static", region="eu", token="fixed-token"),
                entry("fetched", kind="http", url=f"{web.url}/value", field="data"),
                entry("vault", kind="static", token="vault-token"),
                entry("kept", kind="secret_manager", provider="vault", url=web.url, auth="vault", secret="orders"),
                entry("one", kind="secret_manager", provider="vault", url=web.url, auth="vault",
                      map={"pw": "orders", "own": "api"}, field="password"),
                entry("gone", kind="secret_manager", provider="vault", url=web.url, auth="vault"),
                entry("id", kind="google_id_token", auth="vault"),
            )
        )  # fmt: skip
        assert await keys.get("fixed") == {"region": "eu", "token": "fixed-token"}
        assert await keys.get("fetched") == {"user": "ada", "password": "hush-hush"}
        assert await keys.get("kept") == {"password": "from-the-vault"}
        assert await keys.get("one") == {"pw": "from-the-vault", "own": "t"}
        for name, words in (("gone", "names no secret"), ("id", "no `audience`")):
            with pytest.raises(CredentialUnavailable, match=words):
                await keys.get(name)
    finally:
        await client.close()
        web.close()


@pytest.mark.parametrize(("ttl", "asked"), [(None, 3), (0, 3), (60, 1), (30.5, 1)])
async def test_a_fetched_value_is_kept_for_its_time(ttl: float | None, asked: int) -> None:
    client, web, clock = HttpClient(), Web(pages={"/value": {"user": "ada"}}), Clock()
    web.pages["/v1/secret/data/orders"] = {"data": {"data": {"password": "from-the-vault"}, "metadata": {"version": 1}}}
    more = {} if ttl is None else {"ttl_seconds": ttl}
    tokens = Tokens(client.get, clock)
    keys = ring(
        client=client,
        tokens=tokens,
        declared=(
            entry("fetched", kind="http", url=f"{web.url}/value", **more),
            entry("vault", kind="static", token="vault-token"),
            entry("kept", kind="secret_manager", provider="vault", url=web.url, auth="vault", secret="orders", **more),
        ),
    )
    try:
        for name, value in (("fetched", {"user": "ada"}), ("kept", {"password": "from-the-vault"})):
            web.asked.clear()
            for _ in range(3):
                assert await keys.get(name) == value
            assert len(web.asked) == asked
            if ttl:
                await keys.renew(name)  # as after a 401
                assert len(web.asked) == 2
                clock.ahead += 61_000
                await keys.get(name)
                assert len(web.asked) == 3
            else:
                assert await keys.renew(name) is None
    finally:
        await client.close()
        web.close()


async def test_auth_names_a_source_or_several_by_alias() -> None:
    keys = ring()
    assert await keys.auth({"source": "credential", "key": "api"}) == {"token": "t"}
    several = {"a": {"credential": "api"}, "b": {"source": "keychain", "key": "api"}}
    assert await keys.auth(several) == {"a": {"token": "t"}, "b": {"token": "t"}}
    own = {"user": "ada", "password": "hush"}
    assert await keys.auth(own) == own
    with pytest.raises(CredentialUnavailable, match="no credential named `nowhere`"):
        await keys.auth({"source": "credential", "key": "nowhere"})
