"""An access token is fetched once for all workers, sealed, renewed before its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, closing, nullcontext
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest

from noetl.clock import SteadyClock
from noetl.model.errors import CredentialUnavailable, InvalidInput
from noetl.ports.keychain import OfferedToken
from noetl.server.auth.access_tokens import SharedTokens
from noetl.server.auth.vault import Vault, keys_of, new_key
from noetl.settings import ServerSettings
from noetl.wiring.embedded import open_store, open_team
from noetl.worker.http.clients import HttpClient
from noetl.worker.secrets.keychain import Users
from noetl.worker.secrets.oauth2 import Tokens
from tests.client.working import working
from tests.server.serving import listening, places, playbook
from tests.tools.web import Web
from tests.unit.worker.secrets.test_keychain import TokenServer

pytestmark = pytest.mark.asyncio
TOKEN = "token-1-" + "x" * 20


@pytest.fixture
def server() -> Iterator[TokenServer]:
    made = TokenServer()
    yield made
    made.close()


def entry(server: TokenServer, **more: Any) -> dict[str, Any]:
    return {"token_url": f"{server.url}/token", "client_id": "noetl", "client_secret": "right-secret", **more}


class Workers:
    """Workers with memories of their own over one store."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.folder = folder
        self.vault = Vault(keys_of(new_key()))
        self.clock = SteadyClock()
        self.client = HttpClient()
        stack.push_async_callback(self.client.close)
        self._stack = stack

    def worker(self, name: str, refresh_s: float = 30.0) -> Tokens:
        store = open_store(places(self.folder))
        self._stack.push_async_callback(store.close)
        exchange = SharedTokens(lambda: open_team(store), lambda: self.vault, self.clock, name)
        return Tokens(self.client.get, self.clock, exchange=exchange, refresh_s=refresh_s)


async def test_fifty_workers_that_need_a_token_at_once_cause_one_request(tmp_path: Path, server: TokenServer) -> None:
    async with AsyncExitStack() as stack:
        made = Workers(tmp_path, stack)
        workers = [made.worker(f"w{at}") for at in range(50)]
        found = await asyncio.gather(*(one.get(entry(server)) for one in workers))
        assert {one["token"] for one in found} == {TOKEN}
        assert len(server.asked) == 1
        # One that was refused is renewed once.
        again = await asyncio.gather(*(one.get(entry(server), fresh=True) for one in workers))
        assert {one["token"] for one in again} == {TOKEN.replace("1", "2", 1)}
        assert len(server.asked) == 2
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    assert TOKEN.encode() not in stored
    assert b"right-secret" not in stored


async def test_a_worker_that_cannot_fetch_lets_the_next_one_try(tmp_path: Path, server: TokenServer) -> None:
    async with AsyncExitStack() as stack:
        made = Workers(tmp_path, stack)
        server.broken = 3  # all tries of the first
        one, two = made.worker("w1"), made.worker("w2")
        with pytest.raises(CredentialUnavailable):
            await one.get(entry(server))
        assert (await two.get(entry(server)))["token"] == TOKEN
        assert (await one.get(entry(server)))["token"] == TOKEN
        assert len(server.asked) == 1


async def test_a_token_is_renewed_before_its_end(tmp_path: Path, server: TokenServer) -> None:
    async with AsyncExitStack() as stack:
        made, server.life = Workers(tmp_path, stack), 100
        early, late = made.worker("w1", refresh_s=50), made.worker("w2", refresh_s=50)
        before = made.clock.now()
        await early.get(entry(server))
        await late.get(entry(server, auto_renew=False), users="other")
        with closing(connect(tmp_path / "noetl.db")) as store:
            rows = store.execute("SELECT expires_at FROM access_token").fetchall()
        ends = sorted(round((row[0] - before) / 1000) for row in rows)
        assert ends == [50, 100]


class Rotating(TokenServer):
    """Takes only the newest refresh token, and gives a new one with each token."""

    good = "refresh-0"

    def token(self, form: dict[str, str], header: str) -> tuple[int, dict[str, Any]]:
        sent = form.get("refresh_token")
        if sent != self.good:
            return 400, {"error": "invalid_grant"}
        status, answer = super().token(form, header)
        self.good = f"refresh-{len(self.asked)}"
        return status, {**answer, "refresh_token": self.good}


@pytest.fixture
def rotating() -> Iterator[Rotating]:
    made = Rotating()
    yield made
    made.close()


@pytest.mark.parametrize("is_shared", [True, False])
async def test_the_newest_refresh_token_renews(tmp_path: Path, rotating: Rotating, is_shared: bool) -> None:
    given = entry(rotating, grant_type="refresh_token", refresh_token="refresh-0")
    rotating.life = 0
    async with AsyncExitStack() as stack:
        made = Workers(tmp_path, stack)
        one, two = made.worker("w1"), made.worker("w2")
        for worker in (one, one, two, one) if is_shared else (one, one):
            await worker.get(given, is_shared=is_shared)
        sent = [form["refresh_token"] for form, _ in rotating.asked]
        assert sent == [f"refresh-{at}" for at in range(len(sent))]
        # A changed credential begins anew; and so does a token that is refused.
        rotating.good = "refresh-new"
        await one.get({**given, "refresh_token": "refresh-new"}, is_shared=is_shared)
        rotating.good = "refresh-0"
        await one.get(given, is_shared=is_shared)
        assert [form["refresh_token"] for form, _ in rotating.asked[-2:]] == ["refresh-new", "refresh-0"]
        rotating.good = "unknown"
        with pytest.raises(CredentialUnavailable, match="invalid_grant"):
            await one.get(given, is_shared=is_shared)
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    assert b"refresh-" not in stored


async def test_a_refresh_token_that_is_not_replaced_stays(tmp_path: Path, server: TokenServer) -> None:
    server.life = 0
    async with AsyncExitStack() as stack:
        made = Workers(tmp_path, stack)
        for name in ("w1", "w2"):
            await made.worker(name).get(entry(server, grant_type="refresh_token", refresh_token="fixed"))
        assert [form["refresh_token"] for form, _ in server.asked] == ["fixed", "fixed"]


ROTATING = playbook(
    "  - step: fetch\n    tool: {kind: http, url: '{{ workload.server }}/page', auth: crm}\n",
    "rotating",
    keychain=[
        {"name": "crm", "kind": "oauth2", "credential": "client", "token_url": "{{ workload.server }}/token",
         "grant_type": "refresh_token"}
    ],
    workload={"server": ""},
)  # fmt: skip


async def test_remote_workers_share_the_newest_refresh_token(tmp_path: Path, rotating: Rotating) -> None:
    async with listening(tmp_path, ServerSettings(key=new_key())) as served:
        data = {"client_id": "noetl", "client_secret": "right-secret", "refresh_token": "refresh-0"}
        await served.json("PUT", "/api/credentials/client", {"data": data})
        for at in range(3):  # each a new process
            async with working(tmp_path / str(at), served.url, name=f"w{at}"):
                started = await served.start(ROTATING, payload={"server": rotating.url})
                ended = await served.until(started, "completed", "failed")
                assert (ended["status"], ended["error"]) == ("completed", None)
            with connect(tmp_path / "noetl.db") as store:
                store.execute("UPDATE access_token SET expires_at = 0 WHERE length(key) = 64")
            store.close()
    assert [form["refresh_token"] for form, _ in rotating.asked] == ["refresh-0", "refresh-1", "refresh-2"]


TIMED = playbook(
    "  - step: one\n    tool: {kind: http, url: '{{ workload.server }}/status/200', auth: made}\n    next: two\n"
    "  - step: two\n    tool: {kind: http, url: '{{ workload.server }}/status/200', auth: made}\n",
    "timed",
    keychain=[{"name": "made", "kind": "http", "url": "{{ workload.server }}/value", "ttl_seconds": 3600}],
    workload={"server": ""},
)


async def test_workers_share_a_fetched_value_for_its_time(tmp_path: Path) -> None:
    secret, web = "hush-hush-value", Web()
    web.pages["/value"] = {"token": secret}
    try:
        async with listening(tmp_path, ServerSettings(key=new_key())) as served:
            for at in range(2):  # each a new process
                async with working(tmp_path / str(at), served.url, name=f"w{at}"):
                    started = await served.start(TIMED, payload={"server": web.url})
                    ended = await served.until(started, "completed", "failed")
                    assert (ended["status"], ended["error"]) == ("completed", None)
    finally:
        web.close()
    assert [one.path for one in web.asked].count("/value") == 1
    assert {one.headers["authorization"] for one in web.asked if one.path != "/value"} == {f"Bearer {secret}"}
    assert secret.encode() not in b"".join(file.read_bytes() for file in tmp_path.glob("noetl.db*"))


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        (2**63 - 1, 365 * 86_400),
        (1e308, 365 * 86_400),
        (float("inf"), 300),
        (float("nan"), 300),
        (10**400, 300),
        ("soon", 300),
        (-5, 0),
    ],
)
async def test_a_lifetime_without_sense_is_bounded_and_holds_nobody_up(
    tmp_path: Path, server: TokenServer, told: Any, seconds: int
) -> None:
    async with AsyncExitStack() as stack:
        made, server.life = Workers(tmp_path, stack), told
        before, one = made.clock.now(), made.worker("w1", refresh_s=0)
        assert (await one.get(entry(server)))["token"] == TOKEN
        kept = next(iter(one._kept.values()))
        assert round((kept.until - before) / 1000) == seconds
        async with asyncio.timeout(10):  # not the minute that the right to fetch lasts
            assert (await made.worker("w2").get(entry(server)))["token"].startswith("token-")


class Refusing:
    """An exchange that grants the right to fetch and cannot take what is fetched."""

    def __init__(self, error: Exception) -> None:
        self.kept: list[Mapping[str, Any] | None] = []
        self._error = error

    async def ask(self, key: str, seen: int) -> OfferedToken:
        return OfferedToken(may_fetch=True)

    async def keep(self, key: str, token: Mapping[str, Any] | None, expires_at: int) -> int:
        self.kept.append(token)
        if token is not None:
            raise self._error
        return 0


@pytest.mark.parametrize("error", [InvalidInput("too large"), OverflowError("too large"), RuntimeError("broken")])
async def test_the_right_is_given_back_whatever_fails(server: TokenServer, error: Exception) -> None:
    client, exchange = HttpClient(), Refusing(error)
    tokens = Tokens(client.get, SteadyClock(), exchange=exchange)
    with pytest.raises(RuntimeError) if isinstance(error, RuntimeError) else nullcontext():
        assert (await tokens.get(entry(server)))["token"] == TOKEN  # for this worker alone
    assert exchange.kept[1:] == [None]
    await client.close()


@pytest.mark.parametrize(
    ("scope", "same_execution", "same_playbook", "elsewhere"),
    [("local", 2, 2, 2), ("shared", 1, 2, 2), ("catalog", 1, 1, 2), ("global", 1, 1, 1), ("", 1, 1, 1)],
)
async def test_a_scope_says_who_shares_a_token(
    tmp_path: Path, server: TokenServer, scope: str, same_execution: int, same_playbook: int, elsewhere: int
) -> None:
    async with AsyncExitStack() as stack:
        made = Workers(tmp_path, stack)
        for number, (other, expected) in enumerate(
            ((Users("1", "a"), same_execution), (Users("2", "a"), same_playbook), (Users("2", "b"), elsewhere))
        ):
            server.asked.clear()
            for name, users in (("w1", Users("1", "a")), ("w2", other)):
                known, is_shared = users.of(scope)
                await made.worker(f"{name}-{number}").get(
                    entry(server, audience=str(number)), users=known, is_shared=is_shared
                )
            assert len(server.asked) == expected


PLAY = playbook(
    """\
  - step: fetch
    loop: {in: "{{ range(12) | list }}", iterator: n, mode: parallel, spec: {max_in_flight: 12}}
    tool: {kind: http, url: "{{ workload.server }}/page", auth: crm}
""",
    "fetch",
    keychain=[
        {"name": "crm", "kind": "oauth2", "credential": "client", "token_url": "{{ workload.server }}/token", "scope": "global"}
    ],
    workload={"server": ""},
)  # fmt: skip


async def test_remote_workers_share_a_token_through_the_server(tmp_path: Path, server: TokenServer) -> None:
    key = ServerSettings(key=new_key())
    async with listening(tmp_path, key) as served, AsyncExitStack() as stack:
        data = {"client_id": "noetl", "client_secret": "right-secret"}
        await served.json("PUT", "/api/credentials/client", {"data": data})
        for at in range(3):
            await stack.enter_async_context(working(tmp_path / str(at), served.url, name=f"w{at}"))
        started = await served.start(PLAY, payload={"server": server.url})
        ended = await served.until(started, "completed", "failed")
        assert (ended["status"], ended["error"]) == ("completed", None)
        assert len(server.asked) == 1
        assert len(server.seen) == 12
