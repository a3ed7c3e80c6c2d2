"""Kind `postgres` against a real server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
import pytest_asyncio

from noetl.clock import SteadyClock
from noetl.engine.tasks.actions import RunTask
from noetl.engine.tasks.run_info import RunInfo
from noetl.model.outcome import Outcome
from noetl.ports import Blobs, Children, ControlPlane
from noetl.ports.work import run_tool
from noetl.tools import kinds
from noetl.worker.tool_context import DetachedRun, TaskContext, WorkerResources

pytestmark = pytest.mark.asyncio


class Database:
    """One worker's equipment, and the attempts it makes."""

    def __init__(self, address: str) -> None:
        self.address = address
        tools = kinds()

        async def credential(name: str) -> Mapping[str, Any]:
            return {"main": {"dsn": address}}[name]

        self.shared = WorkerResources(
            cast(ControlPlane, None),
            tools,
            tools,
            SteadyClock(),
            cast(Children, None),
            cast(Blobs, None),
            lambda: None,
            credential,
        )

    async def run(
        self,
        auth: Any = "main",
        own: Mapping[str, Any] | None = None,
        spec: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Outcome:
        task = RunTask("sql", "postgres", fields, own or {}, own or {}, 1, "7:s:sql", auth, spec=spec or {})
        runner = self.shared.tools.runner("postgres")
        assert runner is not None
        return await run_tool(runner, fields, TaskContext(DetachedRun(self.shared, RunInfo("7", "s")), task))

    async def result(self, **fields: Any) -> Any:
        outcome = await self.run(**fields)
        assert outcome.status == "ok", outcome.error
        return outcome.result


@pytest_asyncio.fixture
async def database(address: str) -> AsyncIterator[Database]:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    made = Database(address)
    yield made
    await made.shared.shared.close()


async def test_a_query_gives_rows_as_plain_data(database: Database) -> None:
    sql = """SELECT 1 AS n, 'é' AS t, NULL AS z, DATE '2024-05-01' AS d, 1.5::numeric AS m, 12345678901234567890.5::numeric AS big,
             ARRAY[1, 2] AS l, '{"a": [true]}'::jsonb AS j, '\\xff00'::bytea AS b, TIMESTAMPTZ '2024-05-01 10:00:00+00' AS ts,
             '5f0e0b0e-0000-4000-8000-000000000000'::uuid AS u, INTERVAL '90 seconds' AS i"""
    result = await database.result(query=sql)
    assert result["rows"] == [
        {
            "n": 1, "t": "é", "z": None, "d": "2024-05-01", "m": 1.5, "big": "12345678901234567890.5", "l": [1, 2],
            "j": {"a": [True]}, "b": "/wA=", "ts": "2024-05-01T10:00:00+00:00", "i": 90.0,
            "u": "5f0e0b0e-0000-4000-8000-000000000000",
        }
    ]  # fmt: skip
    assert (result["row_count"], result["status"]) == (1, "SELECT 1")


async def test_numbers_that_json_does_not_have_are_texts(database: Database) -> None:
    sql = "SELECT 'NaN'::float8 AS a, '-Infinity'::float4 AS b, 'NaN'::numeric AS c, 123456789012345678901234567890::numeric AS d"
    row = (await database.result(query=sql))["rows"][0]
    assert row == {"a": "NaN", "b": "-Infinity", "c": "NaN", "d": "123456789012345678901234567890"}
    huge = await database.result(query="SELECT 10::numeric ^ 5000 AS n")
    assert (len(huge["rows"][0]["n"]), huge["rows"][0]["n"][:3]) == (5_001, "100")


async def test_many_statements_of_one_text_give_each_its_answer(database: Database) -> None:
    text = """CREATE TABLE t (a int, b text); -- first; still a comment
              INSERT INTO t VALUES (1, 'x;y'), (2, $q$z;$q$);
              DO $$ BEGIN UPDATE t SET b = 'done; really' WHERE a = 2; END $$;
              SELECT b FROM t ORDER BY a;"""
    result = await database.result(command=text)
    assert [row["b"] for row in result["rows"]] == ["x;y", "done; really"]
    assert result["command_1"]["status"] == "INSERT 0 2"
    assert result["command_1"]["row_count"] == 2


@pytest.mark.parametrize(
    ("sql", "params", "value"),
    [
        ("SELECT %(a)s::int + 1 AS v", {"a": 1}, 2),
        ("SELECT %s AS v", ["'; DROP TABLE x; --"], "'; DROP TABLE x; --"),
        ("SELECT %(m)s AS v", {"m": {"a": [1]}}, {"a": [1]}),
        ("SELECT '100%' AS v", None, "100%"),
        ("SELECT %(l)s::int[] AS v", {"l": [1, 2]}, [1, 2]),
    ],
)
async def test_parameters_are_bound_by_the_driver(database: Database, sql: str, params: Any, value: Any) -> None:
    assert (await database.result(query=sql, params=params))["rows"] == [{"v": value}]


async def test_rows_are_written_without_sql(database: Database) -> None:
    await database.result(command='CREATE TABLE "t%" (id int PRIMARY KEY, v jsonb)')
    await database.result(table="t%", values=[{"id": 1, "v": {"a": 1}}, {"id": 2, "v": {"a": 2}}])
    await database.result(table="t%", mode="upsert", key="id", values={"id": 2, "v": {"a": 3}})
    rows = (await database.result(query='SELECT v FROM "t%" ORDER BY id'))["rows"]
    assert rows == [{"v": {"a": 1}}, {"v": {"a": 3}}]
    broken = await database.run(table="t%", values=[{"id": 5, "v": {}}, {"id": 1, "v": {}}])
    assert broken.error is not None
    assert (broken.error.kind, broken.error.code) == ("db_constraint", "PG_23505")
    assert (await database.result(query='SELECT count(*) AS n FROM "t%"'))["rows"] == [{"n": 2}]


async def test_an_upsert_without_a_key_uses_the_idempotency_key(database: Database) -> None:
    await database.result(command="CREATE TABLE r (idempotency_key text PRIMARY KEY, v int)")
    for value in (1, 2):
        await database.result(table="r", mode="upsert", values={"v": value})
    assert (await database.result(query="TABLE r"))["rows"] == [{"idempotency_key": "7:s:sql", "v": 2}]


async def test_transactional_is_all_or_nothing(database: Database) -> None:
    await database.result(command="CREATE TABLE t (a int)")
    two = ["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1 / 0)"]
    assert (await database.run(commands=two, transactional=True)).status == "error"
    assert (await database.result(query="SELECT count(*) AS n FROM t"))["rows"] == [{"n": 0}]
    assert (await database.run(commands=two)).status == "error"
    assert (await database.result(query="SELECT count(*) AS n FROM t"))["rows"] == [{"n": 1}]


@pytest.mark.parametrize(
    ("sql", "kind", "code"),
    [
        ("SELEC 1", "client_error", "PG_42601"),
        ("SELECT 'a'::int", "schema", "PG_22P02"),
        ("TABLE nowhere", "client_error", "PG_42P01"),
    ],
)
async def test_a_failure_is_an_outcome_of_its_kind(database: Database, sql: str, kind: str, code: str) -> None:
    outcome = await database.run(query=sql)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.code, outcome.error.retryable) == (kind, code, False)
    assert outcome.as_data()["pg"] == {"code": code[3:], "sqlstate": code[3:]}


async def test_a_deadlock_may_be_retried(database: Database) -> None:
    raised = "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$"
    outcome = await database.run(command=raised)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("db_deadlock", True)


async def test_a_cancelled_query_stops_on_the_server(database: Database, address: str) -> None:
    task = asyncio.create_task(database.run(query="SELECT pg_sleep(60), 'needle'"))
    await until_active(address, "needle", True)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_active(address, "needle", False)


async def test_an_answer_that_takes_too_long_is_a_time_out_and_its_query_ends(database: Database, address: str) -> None:
    outcome = await database.run(query="SELECT pg_sleep(60), 'too long'", spec={"timeout": {"read": 0.2}})
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, outcome.error.sent) == ("timeout", True, True)
    await until_active(address, "too long", False)
    assert (await database.run(query="SELECT 1 AS n", spec={"timeout": {"read": 5}})).result["rows"] == [{"n": 1}]


async def test_a_database_that_does_not_answer_is_a_time_out(database: Database) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nowhere"
        outcome = await database.run(auth={"dsn": address}, query="SELECT 1", spec={"timeout": {"connect": 0.2}})
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, outcome.error.sent) == ("timeout", True, False)


async def test_who_is_cancelled_twice_leaves_no_query_and_no_connection(database: Database, address: str) -> None:
    task = asyncio.create_task(database.run(query="SELECT pg_sleep(60), 'twice'"))
    await until_active(address, "twice", True)
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_active(address, "twice", False)


async def until_active(address: str, needle: str, active: bool) -> None:
    """Wait until a query runs on the server, or until none is left in any state."""
    asking = "SELECT state FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()"
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        while True:
            rows = await (await connection.execute(asking, [f"%'{needle}'%"])).fetchall()
            if any(row[0] == "active" for row in rows) if active else not rows:
                return
            await asyncio.sleep(0.02)


async def test_a_lost_connection_may_be_retried_and_the_next_task_has_a_new_one(database: Database) -> None:
    outcome = await database.run(query="SELECT pg_terminate_backend(pg_backend_pid())")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("db_connection", True)
    assert (await database.result(query="SELECT 1 AS n"))["rows"] == [{"n": 1}]


@pytest.mark.parametrize("auth", [None, "unknown", {}])
async def test_without_a_connection_the_outcome_says_so(database: Database, auth: Any) -> None:
    outcome = await database.run(auth=auth, query="SELECT 1")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("auth", False)


@pytest.fixture(scope="module")
def guarded(address: str) -> str:
    """The address of a role that has a password, on a server that asks for it."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'right one'")
        row = connection.execute("SHOW hba_file").fetchone()
        assert row is not None
        rules = Path(row[0])
        rules.write_text("host all reader 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
        connection.execute("SELECT pg_reload_conf()")
    return address.replace("noetl@", "reader:{}@")


async def test_a_wrong_password_is_told_at_once(database: Database, guarded: str) -> None:
    right = await database.run(auth={"dsn": guarded.format("right%20one")}, query="SELECT 1 AS n")
    assert right.status == "ok"
    for auth in ({"dsn": guarded.format("wrong")}, {"dsn": guarded.replace(":{}", "")}):
        outcome = await database.run(auth=auth, query="SELECT 1")
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.retryable, outcome.error.sent) == ("auth", False, False)
        assert "cannot connect to the database" in outcome.error.message
        assert "password" in outcome.error.message


async def test_a_refused_connection_is_told_at_once_and_nothing_was_sent(database: Database) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]  # bound and not listening: refused
        async with asyncio.timeout(5):
            outcome = await database.run(auth={"host": "127.0.0.1", "port": port, "dbname": "x"}, query="SELECT 1")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, outcome.error.sent) == ("db_connection", True, False)
    assert "Connection refused" in outcome.error.message


async def test_a_database_that_is_not_there(database: Database, address: str) -> None:
    outcome = await database.run(auth={"dsn": address.rpartition("/")[0] + "/nowhere"}, query="SELECT 1")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("not_found", False)


async def test_every_task_has_a_fresh_session_on_the_same_connection(database: Database) -> None:
    first = await database.result(query="SELECT pg_backend_pid() AS pid")
    await database.result(
        command="SET search_path = pg_catalog; CREATE TEMP TABLE mine (a int); SET standard_conforming_strings = off"
    )
    asked = "SELECT pg_backend_pid() AS pid, current_setting('search_path') AS path, to_regclass('mine') AS mine, 'a\\b' AS text"
    row = (await database.result(query=asked))["rows"][0]
    assert row == {**first["rows"][0], "path": '"$user", public', "mine": None, "text": "a\\b"}


async def test_strings_mean_what_the_standard_says_whatever_the_role_is_set_to(
    database: Database, address: str
) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE ROLE odd LOGIN SUPERUSER; ALTER ROLE odd SET standard_conforming_strings = off")
    auth = {"dsn": address.replace("noetl@", "odd@")}
    for _ in range(2):  # new, and used again
        outcome = await database.run(auth=auth, query="SELECT 'a\\' AS text")
        assert outcome.result["rows"] == [{"text": "a\\"}]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP ROLE odd")


async def test_a_connection_that_the_server_ended_is_replaced(database: Database, address: str) -> None:
    pid = (await database.result(query="SELECT pg_backend_pid() AS pid"))["rows"][0]["pid"]
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    assert (await database.result(command="CREATE TABLE t (a int)"))["status"] == "CREATE TABLE"


async def test_what_a_task_leaves_in_its_session_is_discarded_without_a_next_task(
    database: Database, address: str
) -> None:
    await database.result(query="SELECT pg_advisory_lock(11)")
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        async with asyncio.timeout(10):
            await connection.execute("SELECT pg_advisory_lock(11)")


class Relay:
    """A way to a server, which can lose its connections without a word."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ways: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._lost: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, there = await asyncio.open_connection("127.0.0.1", self._port)
        self._ways.append((writer, there))
        await asyncio.gather(self._copy(reader, there, writer), self._copy(back, writer, there))

    async def _copy(self, reader: asyncio.StreamReader, to: asyncio.StreamWriter, other: asyncio.StreamWriter) -> None:
        while found := await reader.read(65536):
            if other in self._lost:
                other.transport.abort()
                return
            to.write(found)
        if to not in self._lost:
            to.transport.abort()

    def lose(self) -> None:
        """End the connections to the server; the other side learns of it when it sends."""
        for writer, there in self._ways:
            self._lost.add(writer)
            there.transport.abort()


async def test_a_connection_that_was_lost_without_a_word_is_replaced(database: Database, address: str) -> None:
    relay = Relay(int(str(psycopg.conninfo.conninfo_to_dict(address)["port"])))
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    auth = {"dsn": psycopg.conninfo.make_conninfo(address, port=port)}
    async with server:
        assert (await database.run(auth=auth, query="SELECT 1 AS n")).status == "ok"
        await asyncio.sleep(0.6)  # longer than a connection is trusted
        relay.lose()
        outcome = await database.run(auth=auth, query="SELECT 2 AS n")
        assert outcome.error is None
        assert outcome.result["rows"] == [{"n": 2}]
        await database.shared.shared.close()


async def test_connections_end_with_the_worker(database: Database, address: str) -> None:
    pid = (await database.result(query="SELECT pg_backend_pid() AS pid"))["rows"][0]["pid"]
    await database.shared.shared.close()
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        while await (await connection.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid])).fetchone():
            await asyncio.sleep(0.02)


async def test_more_tasks_than_connections_wait_their_turn(database: Database) -> None:
    found = await asyncio.gather(
        *(database.result(query="SELECT pg_sleep(0.02), pg_backend_pid() AS pid") for _ in range(25))
    )
    assert len({one["rows"][0]["pid"] for one in found}) <= 10


MEET = """
INSERT INTO meeting VALUES (1);
DO $$ DECLARE tries int := 0; BEGIN
  WHILE (SELECT count(*) FROM meeting) < 12 LOOP
    IF tries > 1000 THEN RAISE EXCEPTION 'the others did not come'; END IF;
    PERFORM pg_sleep(0.02); tries := tries + 1;
  END LOOP;
END $$
"""


async def test_a_task_sizes_the_pool_of_its_credential(database: Database) -> None:
    async def together(count: int, text: str, pool: Mapping[str, Any]) -> list[Outcome]:
        return await asyncio.gather(*(database.run(command=text, pool=pool) for _ in range(count)))

    one = await together(3, "SELECT pg_backend_pid() AS pid", {"max_size": 1})
    assert len({outcome.result["rows"][0]["pid"] for outcome in one}) == 1
    await database.run(command="CREATE TABLE meeting (n int)")
    twelve = await together(12, MEET, {"max_size": 12})  # more than a pool usually has
    assert {outcome.status for outcome in twelve} == {"ok"}


async def test_a_task_waits_no_longer_for_a_connection_than_its_pool_says(database: Database) -> None:
    pool = {"max_size": 1, "timeout": 0.2}
    blocked = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    async with await psycopg.AsyncConnection.connect(database.address, autocommit=True) as other:
        await other.execute("SELECT pg_advisory_lock(7)")
        holder = asyncio.ensure_future(database.run(command="SELECT pg_advisory_lock(7)", pool=pool))
        while await (await other.execute(blocked)).fetchone() == (0,):  # until it holds the only connection
            await asyncio.sleep(0.01)
        outcome = await database.run(command="SELECT 1", pool=pool)
        assert outcome.error is not None
        assert "had none free within 0.2 s" in outcome.error.message
        await other.execute("SELECT pg_advisory_unlock(7)")
        assert (await holder).status == "ok"
    assert (await database.run(command="SELECT 1", pool={"max_size": 1})).status == "ok"


async def test_more_tasks_than_may_wait_fail_at_once(database: Database) -> None:
    pool = {"max_size": 1, "max_waiting": 1}
    outcomes = await asyncio.gather(*(database.run(command="SELECT pg_sleep(0.5)", pool=pool) for _ in range(3)))
    assert sorted(outcome.status for outcome in outcomes) == ["error", "ok", "ok"]


async def test_a_pool_keeps_connections_open_and_replaces_old_ones(database: Database) -> None:
    pids = "SELECT pg_backend_pid() AS pid"
    kept = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    first = await database.run(command=pids, pool={"min_size": 3, "max_lifetime": 3600})
    assert first.status == "ok"
    opened = (await database.run(command=kept)).result["rows"]
    assert len(opened) >= 3
    for _ in range(5):
        assert (await database.run(command=pids)).result["rows"][0] in opened
    again = await database.run(command=pids, pool={"max_lifetime": 0})
    assert again.result["rows"][0] not in opened
    assert (await database.run(command=pids)).result["rows"] != again.result["rows"]


async def test_a_pool_with_more_at_least_than_at_most_is_refused(database: Database) -> None:
    outcome = await database.run(command="SELECT 1", pool={"min_size": 5, "max_size": 2})
    assert outcome.error is not None
    assert (outcome.error.kind, "min_size" in outcome.error.message) == ("schema", True)
