"""Master keys are rotated under load: no task fails, and the old key is gone.

300 credentials by default, 10,000 under `make chaos`. Tasks read them all the time: on SQLite while the key file is
replaced, on PostgreSQL while two servers are restarted with new keys, as an operator does it. An interrupted rotation
loses nothing, and the next one completes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from time import monotonic

import httpx
import psycopg
import pytest

from noetl.model.errors import InvalidInput
from noetl.private_files import write_private
from noetl.server.auth.vault import Vault, keys_of, new_key, vault_beside
from noetl.settings import ServerSettings, Settings
from noetl.wiring.credentials import key_file
from noetl.wiring.embedded import Team, open_store, open_team
from noetl.wiring.local_credentials import local_credentials
from tests.client.working import working
from tests.databases import fresh_database
from tests.server.serving import PATIENCE_S, Served, happens, in_process, listening, places, playbook, process
from tests.services import free_port

pytestmark = pytest.mark.asyncio
SIZES = [300, pytest.param(10_000, marks=pytest.mark.chaos)]
AT_ONCE = 5  # credentials that an execution reads
PLAY = playbook(
    "  - step: use\n    loop: {in: '{{ workload.names }}', iterator: name, mode: parallel}\n"
    "    tool:\n"
    "      - read: {kind: secrets, secret: '{{ iter.name }}', field: token}\n"
    "      - size: {kind: noop, result: '{{ read.value | length }}'}\n",
    workload={"names": []},
)


def token(number: int) -> str:
    return f"secret-{number:06}-" + "x" * (number % 7)


async def fill(team: Team, vault: Vault, size: int) -> None:
    async def put(number: int) -> None:
        name = f"c{number}"
        sealed = await vault.seal(team, name, {"token": token(number)}, 1)
        await team.put_credential(name, "generic", sealed, {}, 1)

    for first in range(0, size, 20):
        await asyncio.gather(*(put(number) for number in range(first, min(size, first + 20))))


class Load:
    """Executions that read credentials, started by turns at every server that answers."""

    def __init__(self, size: int) -> None:
        self.servers: list[Served] = []
        self.started: list[tuple[str, list[int]]] = []
        self.ended = 0
        self._size = size
        self._numbers = count()

    async def start(self, http: httpx.AsyncClient) -> None:
        """Start one after the other until cancelled, with a few of them under way."""
        for turn in count():
            names = [next(self._numbers) * 11 % self._size for _ in range(AT_ONCE)]
            body = {"path": "test/play", "payload": {"names": [f"c{number}" for number in names]}}
            with suppress(httpx.TransportError, IndexError):  # it is restarted: the next turn is at the other one
                url = self.servers[turn % len(self.servers)].url
                answer = await http.post(f"{url}/api/execute", json=body)
                if answer.status_code < 500:
                    self.started.append((answer.json()["execution_id"], names))
            while len(self.started) - self.ended > 4 and self.servers:
                with suppress(httpx.TransportError):
                    await self._count(http, self.servers[-1].url)
                await asyncio.sleep(0.01)

    async def _count(self, http: httpx.AsyncClient, url: str) -> None:
        answer = await http.get(f"{url}/api/executions?status=completed&status=failed&status=partial&limit=1000")
        assert answer.is_success, answer.text
        self.ended = max(self.ended, len(answer.json()["executions"]))

    async def reached(self, more: int) -> None:
        """Wait for more started executions; with more credentials, for more."""
        wanted = len(self.started) + more * max(1, self._size // 500)
        await happens(lambda: len(self.started) >= wanted, "load")

    async def check(self, served: Served) -> None:
        """Every execution ended well, with the values of its credentials."""
        for execution_id, names in self.started:
            row = await served.until(execution_id, "completed", "failed", "partial", "cancelled")
            assert (row["status"], row["error"]) == ("completed", None), row
            assert [one["data"] for one in row["result"]["results"]] == [len(token(number)) for number in names]
        assert (await served.json("GET", "/api/dlq"))["letters"] == []


class Pair:
    """Two servers on one database; each can be restarted with other keys."""

    def __init__(self, folder: Path, database: str, ports: tuple[int, int], load: Load) -> None:
        self.running: dict[int, Served] = {}
        self._folder, self._database, self._ports, self._load = folder, database, ports, load
        self._stacks = (AsyncExitStack(), AsyncExitStack())

    async def __aenter__(self) -> Pair:
        return self

    async def __aexit__(self, *error: object) -> None:
        for stack in self._stacks:
            await stack.aclose()

    async def restart(self, at: int, keys: str) -> None:
        self._load.servers = [one for number, one in self.running.items() if number != at]
        await self._stacks[at].aclose()
        server = listening(
            self._folder, ServerSettings(key=keys), self._ports[at], database=self._database, lease_ms=2_000
        )
        self.running[at] = await self._stacks[at].enter_async_context(server)
        self._load.servers = list(self.running.values())


@asynccontextmanager
async def under(load: Load, http: httpx.AsyncClient) -> AsyncIterator[None]:
    """Run the load inside the block; its own failure is a failure of the test.

    The client must stay open: a request that connects while it is closed leaves its connection open.
    """
    task = asyncio.create_task(load.start(http))
    try:
        await load.reached(3)
        yield
        await load.reached(3)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def opened(team: Team, keys: str, size: int) -> int:
    """Return how many credentials a new process with these keys opens."""
    vault, good = Vault(keys_of(keys)), 0
    for number in range(size):
        row = await team.sealed_credential(f"c{number}")
        assert row is not None
        good += await vault.open(team, f"c{number}", row["sealed"]) == {"token": token(number)}
    return good


async def none_opens(team: Team, keys: str) -> None:
    row = await team.sealed_credential("c0")
    assert row is not None
    with pytest.raises(InvalidInput, match="sealed with a key that this server does not have"):
        await Vault(keys_of(keys)).open(team, "c0", row["sealed"])


def note(record_property: Callable[[str, object], None], load: Load, size: int, seconds: Iterable[float]) -> None:
    took = ", ".join(f"{one * 1000:.0f} ms" for one in seconds)
    text = f"{len(load.started)} executions read {len(load.started) * AT_ONCE} credentials of {size:,}, none failed"
    record_property("summary", f"{text}; rotations took {took}")


@pytest.mark.parametrize("size", SIZES)
async def test_the_key_file_is_replaced_while_tasks_run(
    tmp_path: Path, size: int, record_property: Callable[[str, object], None]
) -> None:
    load, settings, took = Load(size), places(tmp_path), []
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        team, first = served.services.team, key_file(settings).read_text()
        assert served.services.vault is not None
        await fill(team, served.services.vault, size)
        await served.register(PLAY)
        load.servers = [served]
        async with (
            under(load, served.http),
            local_credentials(settings, "test") as one,
            local_credentials(settings, "test") as two,
        ):
            for _ in range(4):
                began = monotonic()
                masters = {done.master for done in await asyncio.gather(one.rotate_keys(), two.rotate_keys())}
                took.append(monotonic() - began)
                assert len(masters) == 2  # one after the other
                await load.reached(2)
            listed = await served.json("GET", "/api/keys")
            assert [one["is_current"] for one in listed["keys"]] == [True]  # it has read the file again
            assert (await served.json("POST", "/api/keys/rotate", {}))["rotated"] == 1  # to a new key
            await load.reached(2)
        await load.check(served)
        last = key_file(settings).read_text()
        assert "," not in last
        assert last != first
        assert await opened(team, last, size) == size
        await none_opens(team, first)
    note(record_property, load, size, took)


@pytest.mark.parametrize("stage", ["before the data keys are wrapped", "before the old key is removed"])
async def test_an_interrupted_rotation_of_a_key_file_loses_nothing(
    tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, writes = places(tmp_path), count(1)

    def interrupted(path: Path, text: str) -> None:
        is_last = next(writes) == 2
        if not is_last:
            write_private(path, text)
        if is_last or stage.startswith("before the data"):
            raise KeyboardInterrupt

    async with in_process(tmp_path) as served:
        assert served.services.vault is not None
        await fill(served.services.team, served.services.vault, 10)
        with monkeypatch.context() as patch:
            patch.setattr("noetl.server.auth.key_file.write_private", interrupted)
            async with local_credentials(settings, "test") as local:
                with pytest.raises(KeyboardInterrupt):
                    await local.rotate_keys()
        both = key_file(settings).read_text()
        assert await opened(served.services.team, both, 10) == 10  # a server that starts now
        async with local_credentials(settings, "test") as local:
            assert (await local.rotate_keys()).rotated == 1
        last = key_file(settings).read_text()
        assert await opened(served.services.team, last, 10) == 10
        assert not set(last.split(",")) & set(both.split(","))


async def sealed_store(folder: Path, name: str) -> tuple[Settings, Team, Callable[[], Awaitable[None]]]:
    """Create a store with one credential in a folder that others may share."""
    settings = Settings(folder / name)
    store = open_store(settings)
    async with local_credentials(settings, "test") as local:
        await local.put_credential("c0", {"token": token(0)})
    return settings, open_team(store), store.close


async def test_a_rotation_keeps_the_key_of_the_other_stores_of_the_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, first, close_first = await sealed_store(tmp_path, "a.db")
    two, second, close_second = await sealed_store(tmp_path, "b.db")
    (tmp_path / "notes.txt").write_text("no store")
    old = key_file(one).read_text()
    async with local_credentials(one, "test") as ours, local_credentials(two, "test") as theirs:
        assert (await theirs.rotate_keys()).rotated == 1
        both = key_file(one).read_text().split(",")
        assert (len(both), both[1]) == (2, old)
        assert "a.db may need" in caplog.text
        assert await opened(first, ",".join(both), 1) == await opened(second, both[0], 1) == 1
        assert [row.is_current for row in (await ours.data_keys()).keys] == [False]
        assert (await theirs.rotate_keys()).rotated == 1
        assert key_file(one).read_text().split(",")[1:] == [old]  # the one between is needed by none
        assert (await ours.rotate_keys()).rotated == 1
    newest, kept = key_file(one).read_text().split(",")
    assert await opened(first, newest, 1) == await opened(second, kept, 1) == 1
    await none_opens(first, old)
    await close_first()
    await close_second()
    assert {path.name for path in tmp_path.iterdir()} == {"a.db", "b.db", "key", "key.lock", "notes.txt"}


async def test_a_rotation_keeps_all_keys_beside_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    settings, team, close = await sealed_store(tmp_path, "a.db")
    _, _, close_damaged = await sealed_store(tmp_path, "b.db")
    await close_damaged()
    (tmp_path / "b.db").write_bytes((tmp_path / "b.db").read_bytes()[:4096])
    old = key_file(settings).read_text()
    async with local_credentials(settings, "test") as local:
        await local.rotate_keys()
    newest, *kept = key_file(settings).read_text().split(",")
    assert kept == [old]
    assert await opened(team, newest, 1) == 1
    await close()


async def test_a_store_without_a_data_key_gets_its_first_one_from_the_newest_key(tmp_path: Path) -> None:
    """A server that has an older key reads the file before it wraps a data key."""
    settings, _, close = await sealed_store(tmp_path, "a.db")
    late, store = vault_beside(tmp_path / "b.db"), open_store(Settings(tmp_path / "b.db"))
    async with local_credentials(settings, "test") as local:
        await local.rotate_keys()
    await fill(open_team(store), late, 1)
    assert await opened(open_team(store), key_file(settings).read_text(), 1) == 1
    await store.close()
    await close()


@pytest.mark.parametrize("size", SIZES)
async def test_two_servers_are_given_a_new_key_while_tasks_run(
    tmp_path: Path, size: int, record_property: Callable[[str, object], None]
) -> None:
    old, new, load = new_key(), new_key(), Load(size)
    database, ports = fresh_database("rotation"), (free_port(), free_port())
    store = open_store(Settings(tmp_path / "noetl.db", database=database))
    team = open_team(store)
    await fill(team, Vault(keys_of(old)), size)
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    async with (
        Pair(tmp_path, database, ports, load) as pair,
        working(tmp_path / "one", *urls, name="w1"),
        working(tmp_path / "two", *reversed(urls), name="w2"),
    ):
        for at in range(2):
            await pair.restart(at, old)
        await pair.running[0].register(PLAY)
        async with httpx.AsyncClient(timeout=PATIENCE_S, verify=False) as http, under(load, http):
            for at in range(2):
                await pair.restart(at, f"{new},{old}")
                await load.reached(2)
            began = monotonic()
            asked = [one.json("POST", "/api/keys/rotate", {}) for one in pair.running.values()]
            done = await asyncio.gather(*asked)
            took = monotonic() - began
            assert sum(one["rotated"] for one in done) == len(await team.data_keys())
            for at in range(2):
                await load.reached(2)
                await pair.restart(at, new)
        await load.check(pair.running[0])
        assert all(row["is_current"] for row in (await pair.running[0].json("GET", "/api/keys"))["keys"])
    assert await opened(team, new, size) == size
    await none_opens(team, old)
    await store.close()
    note(record_property, load, size, [took])


async def test_a_server_killed_in_the_middle_of_a_rotation(tmp_path: Path) -> None:
    """A server is killed while its transaction waits; another one completes it."""
    old, new = new_key(), new_key()
    database = fresh_database("rotation")
    store = open_store(Settings(tmp_path / "noetl.db", database=database))
    team = open_team(store)
    await fill(team, Vault(keys_of(old)), 20)
    keys = {"NOETL_ENCRYPTION_KEY": f"{new},{old}"}
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%data_key%'"
    with (
        process(tmp_path, "serve", "--store", database, environment=keys) as (url, server),
        psycopg.connect(database) as holder,
        psycopg.connect(database, autocommit=True) as watcher,
    ):
        holder.execute("SELECT 1 FROM noetl.data_key FOR UPDATE")
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client:
            asked = asyncio.create_task(client.post("/api/keys/rotate", json={}))
            await happens(lambda: watcher.execute(waiting).fetchone() != (0,), "the rotation")
            server.kill()
            with pytest.raises(httpx.TransportError):
                await asked
        holder.rollback()
    async with in_process(tmp_path, ServerSettings(key=keys["NOETL_ENCRYPTION_KEY"]), database=database) as served:
        await served.json("POST", "/api/keys/rotate", {})
        assert all(row["is_current"] for row in (await served.json("GET", "/api/keys"))["keys"])
    assert await opened(team, new, 20) == 20
    await none_opens(team, old)
    await store.close()
