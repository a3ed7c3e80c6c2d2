"""Kinds that run inside the worker, behind the walls of the sandbox."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from noetl.worker.processes import sandbox
from tests.tools.attempts import Attempts

MODES = [
    pytest.param(mode, marks=pytest.mark.skipif(sandbox.problem(mode) is not None, reason=str(sandbox.problem(mode))))
    for mode in ("landlock", "bwrap")
]
pytestmark = pytest.mark.asyncio
ROWS = [{"a": 1}]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest_asyncio.fixture
async def walled(mode: str, tmp_path: Path) -> AsyncIterator[Attempts]:
    for name in ("hidden", "shared", "closed"):
        (tmp_path / name).mkdir()
    for folder in ("hidden", "closed"):
        (tmp_path / folder / "key").write_text("a: b\n")
        (tmp_path / folder / "rows.csv").write_text("a\n1\n")
        (tmp_path / folder / "rows.jsonl").write_text('{"a":1}\n')
        os.link(tmp_path / folder / "key", tmp_path / folder / "key.sql")
    (tmp_path / "closed" / "link").symlink_to(tmp_path / "hidden" / "key")
    made = Attempts(
        folder=str(tmp_path), sandbox=mode, hidden=[str(tmp_path / "hidden")], writable=[str(tmp_path / "shared")]
    )
    yield made
    await made.close()


def reads(path: str) -> list[tuple[str, dict[str, Any]]]:
    """Every way by which a kind inside the worker reads a file."""
    return [
        ("artifact", {"action": "get", "uri": f"file://{path}/key"}),
        ("duckdb", {"query": f"SELECT content FROM read_text('{path}/key')"}),
        ("duckdb", {"query": f"SELECT * FROM read_csv('{path}/rows.csv')"}),
        ("duckdb", {"script": {"uri": f"{path}/key.sql"}}),
        ("script", {"uri": f"{path}/key", "interpreter": "true"}),
        ("python", {"script": {"uri": f"{path}/key"}}),
        ("http", {"url": "http://127.0.0.1:1/", "verify": f"{path}/key"}),
        *(
            ("transfer", {"source": {"kind": "file", "path": f"{path}/{name}"}, "target": to_file("shared/out.jsonl")})
            for name in ("rows.csv", "rows.jsonl")
        ),
    ]


def writes(path: str) -> list[tuple[str, dict[str, Any]]]:
    """Every way by which a kind inside the worker writes a file."""
    source = {"kind": "file", "path": "closed/rows.jsonl"}
    return [
        ("artifact", {"action": "put", "uri": f"file://{path}/new.txt", "data": "text"}),
        ("artifact", {"action": "put", "uri": f"file://{path}/new.jsonl", "data": ROWS, "mode": "append"}),
        ("duckdb", {"command": f"COPY (SELECT 1) TO '{path}/new.csv'"}),
        ("duckdb", {"command": f"ATTACH '{path}/new.db' AS d; CREATE TABLE d.t (a INT)"}),
        ("duckdb", {"command": f"EXPORT DATABASE '{path}/export'"}),
        ("duckdb", {"database": f"{path}/own.duckdb", "command": "CREATE TABLE t (a INT)"}),
        *(
            ("transfer", {"source": source, "target": to_file(f"{path}/sub/out.{ending}")})
            for ending in ("csv", "jsonl", "parquet")
        ),
    ]


def to_file(path: str) -> dict[str, Any]:
    return {"kind": "file", "path": path}


def message(tried: Any) -> str:
    text: str = tried.error.message
    return text


async def refused(walled: Attempts, kind: str, fields: Mapping[str, Any]) -> str:
    said = message(await walled.run(kind, fields))
    assert "NOETL_SANDBOX" in said, (kind, fields, said)
    return said


def files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


async def test_nothing_that_is_hidden_is_read(walled: Attempts) -> None:
    for kind, fields in reads(f"{walled.folder}/hidden"):
        await refused(walled, kind, fields)


async def test_a_link_to_what_is_hidden_is_not_followed(walled: Attempts) -> None:
    await refused(walled, "artifact", {"action": "get", "uri": "file://closed/link"})
    await refused(walled, "duckdb", {"query": f"SELECT content FROM read_text('{walled.folder}/closed/link')"})
    await refused(walled, "python", {"script": {"uri": "closed/link"}})


async def test_everything_else_is_read(walled: Attempts) -> None:
    for kind, fields in reads(f"{walled.folder}/closed"):
        if kind == "http":
            continue  # needs a server
        tried = await walled.run(kind, fields)
        if tried.outcome.error is not None:
            assert kind in ("duckdb", "python"), tried.error  # it was read, and is no SQL and no Python
            assert "NOETL_SANDBOX" not in tried.error.message


async def test_files_are_written_only_to_named_folders(walled: Attempts, tmp_path: Path) -> None:
    before = files(tmp_path / "closed") | files(tmp_path / "hidden")
    for folder in ("closed", "hidden", "shared/../closed"):
        for kind, fields in writes(f"{tmp_path}/{folder}"):
            await refused(walled, kind, fields)
    assert files(tmp_path / "closed") | files(tmp_path / "hidden") == before
    for kind, fields in writes(f"{tmp_path}/shared"):
        assert (await walled.run(kind, fields)).outcome.error is None, (kind, fields)


@pytest.mark.parametrize("name", ["environ", "mem", "maps", "cmdline", "fd/0"])
async def test_the_worker_itself_is_not_read(walled: Attempts, name: str) -> None:
    for path in (f"/proc/self/{name}", f"/proc/{os.getpid()}/{name}"):
        assert (await walled.run("artifact", {"action": "get", "uri": f"file://{path}"})).outcome.status == "error"
        read = await walled.run("duckdb", {"query": f"SELECT content FROM read_text('{path}')"})
        assert read.outcome.status == "error", path


async def test_what_is_no_file_blocks_nothing(walled: Attempts, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "closed" / "pipe")
    tried = await walled.run("artifact", {"action": "get", "uri": "file://closed/pipe"})
    assert "no regular file" in tried.error.message


@pytest.mark.parametrize(
    "statement",
    [
        "INSTALL httpfs",
        "INSTALL httpfs FROM 'http://127.0.0.1:1/'",
        "LOAD httpfs",
        "FROM read_csv('http://127.0.0.1:1/x.csv')",
        "ATTACH 'host=127.0.0.1' AS p (TYPE postgres)",
        "ATTACH 'http://127.0.0.1:1/a.db' AS h",
        "SET enable_external_access = true",
        "SET extension_directory = '/tmp'",
        "SET memory_limit = '1TB'",
        "RESET lock_configuration",
    ],
)
@pytest.mark.parametrize("walls", [{"sandbox": "landlock"}, {"has_network": False}])
async def test_duckdb_does_not_open_its_walls(tmp_path: Path, walls: dict[str, Any], statement: str) -> None:
    if sandbox.problem(walls.get("sandbox", "none")) is not None:
        pytest.skip(str(sandbox.problem(walls["sandbox"])))
    walled = Attempts(folder=str(tmp_path), **walls)
    try:
        tried = await walled.run("duckdb", {"command": statement})
        assert "NOETL_EGRESS_PRIVATE" in tried.error.message, tried.error
    finally:
        await walled.close()


async def test_a_worker_without_a_sandbox_reads_and_writes_as_its_user(tmp_path: Path) -> None:
    free = Attempts(folder=str(tmp_path))
    try:
        (tmp_path / "closed").mkdir()
        (tmp_path / "closed" / "rows.jsonl").write_text('{"a":1}\n')
        for kind, fields in writes(f"{tmp_path}/anywhere"):
            (tmp_path / "anywhere").mkdir(exist_ok=True)
            assert (await free.run(kind, fields)).outcome.error is None, (kind, fields)
    finally:
        await free.close()


async def test_rows_are_transferred_to_a_database_in_a_shared_folder(walled: Attempts) -> None:
    database = f"{walled.folder}/shared/own.duckdb"
    assert (
        await walled.run("duckdb", {"database": database, "command": "CREATE TABLE t (a INT)"})
    ).outcome.error is None
    source = {"kind": "file", "path": "closed/rows.jsonl"}
    target = {"kind": "duckdb", "database": database, "table": "t"}
    moved = await walled.run("transfer", {"source": source, "target": target})
    assert moved.outcome.error is None, moved.outcome


async def test_a_task_names_no_files_in_a_connection_that_it_writes_itself(walled: Attempts) -> None:
    for option in ("sslkeylogfile", "sslrootcert", "passfile", "service"):
        auth = {"dsn": f"host=127.0.0.1 port=1 {option}={walled.folder}/hidden/key"}
        said = message(await walled.run("postgres", {"query": "SELECT 1"}, auth=auth))
        assert f"may not set `{option}`" in said, said


async def test_a_pipe_is_no_database_and_holds_up_no_other_task(walled: Attempts) -> None:
    pipe = f"{walled.folder}/shared/pipe"
    os.mkfifo(pipe)
    said = message(await walled.run("duckdb", {"database": pipe, "command": "SELECT 1"}))
    assert "is no regular file" in said
    assert (await walled.run("duckdb", {"command": "SELECT 1"})).outcome.error is None
