"""Stream rows in chunks from databases, files and HTTP, to databases and files.

A target is changed completely or not at all. DuckDB reads and writes CSV and Parquet. Tested in
tests/tools/test_transfer.py.
"""

import csv
import io
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import msgspec

from noetl.blobs.parts import matches
from noetl.expr.sql.statements import split_statements
from noetl.model.errors import InvalidInput
from noetl.model.outcome import failed
from noetl.ports import ToolContext
from noetl.ports.web import WebError, WebRequest
from noetl.tools.fields import SqlInput, retry_after
from noetl.tools.sql.chunk import Chunk, Maps, Row, from_database
from noetl.tools.sql.connections import duckdb_connection, missing_library, pg_pool
from noetl.tools.sql.files import in_own_thread, open_file
from noetl.tools.sql.pg_bulk_load import copy_into
from noetl.tools.sql.statements import RowsError, name, percent_statement, write_statement
from noetl.tools.sql.upsert_file import by_key

Add = Callable[[Chunk], Awaitable[None]]
Run = Callable[..., Awaitable[Any]]
_FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Source or target of rows."""

    kind: str
    auth: str | None = None
    query: str | None = None
    table: str | None = None
    params: dict[str, Any] | list[Any] | None = None
    database: str | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    path: str | None = None
    format: str | None = None
    rows_path: str | None = None


def read_rows(source: Place, most: int, context: ToolContext) -> AsyncGenerator[Chunk, None]:
    """Iterate over the rows of a source in chunks. Raises RowsError or driver errors."""
    readers = {"postgres": _from_postgres, "duckdb": _from_duckdb, "file": _from_files, "http": _from_http}
    if source.kind not in readers:
        raise _not_here(source.kind, "read")
    return readers[source.kind](source, most, context)


@asynccontextmanager
async def write_rows(target: Place, how: SqlInput, context: ToolContext) -> AsyncIterator[Add]:
    """Yield a function that adds rows; they are committed when the block succeeds."""
    writers = {"postgres": _to_postgres, "duckdb": _to_duckdb, "file": _to_file}
    if target.kind not in writers:
        raise _not_here(target.kind, "written")
    async with writers[target.kind](target, how, context) as add:
        yield add


def _not_here(kind: str, done: str) -> RowsError:
    message = f"`{kind}` cannot be {done}; supported are postgres, duckdb, file and, as a source, http"
    return RowsError(failed("client_error", message, code="NO_TOOL"))


def _lacks(kind: str, *fields: str) -> RowsError:
    return RowsError(failed("schema", f"`{kind}` needs {' or '.join(f'`{field}`' for field in fields)}"))


# Databases


def _query(source: Place) -> str:
    if source.query:
        found = split_statements(source.query)
        if len(found) != 1:
            raise RowsError(failed("schema", f"`query` must be one statement, not {len(found)}"))
        return found[0]
    if not source.table:
        raise _lacks(source.kind, "query", "table")
    return f"SELECT * FROM {name(source.table)}"


async def _from_postgres(source: Place, most: int, context: ToolContext) -> AsyncGenerator[Chunk, None]:
    pool = await _pool(source, context)
    async with pool.connection() as connection, connection.transaction(), connection.cursor("noetl_transfer") as cursor:
        await cursor.execute(_query(source), source.params or None)
        columns = [column.name for column in cursor.description or ()]
        while rows := await cursor.fetchmany(most):
            yield from_database(columns, rows)


@asynccontextmanager
async def _to_postgres(target: Place, how: SqlInput, context: ToolContext) -> AsyncIterator[Add]:
    from psycopg.types.json import Jsonb

    if not target.table:
        raise _lacks("postgres", "table")
    pool = await _pool(target, context)
    async with pool.connection() as connection, connection.transaction(), connection.cursor() as cursor:
        if how.mode == "overwrite":
            await cursor.execute(f"DELETE FROM {name(target.table)}")
        async with copy_into(cursor, target.table, allowed=how.mode != "upsert") as copy:

            async def add(chunk: Chunk) -> None:
                columns = chunk.names
                sql = percent_statement(how, columns)
                if await copy.add(columns, chunk):
                    return
                values = [
                    [Jsonb(one) if isinstance(one, Mapping) else one for one in (row.get(key) for key in columns)]
                    for row in chunk.rows
                ]
                await cursor.executemany(sql, values)

            yield add


async def _pool(place: Place, context: ToolContext) -> Any:
    try:
        import psycopg  # noqa: F401 - fail early if it is missing
    except ModuleNotFoundError:
        raise RowsError(missing_library("postgres", "psycopg")) from None
    try:
        return await pg_pool(place.auth if place.auth is not None else context.auth, context)
    except KeyError as error:
        raise RowsError(failed("auth", f"unknown credential {error}", code="NO_CREDENTIAL")) from None
    except ValueError as error:
        raise RowsError(failed("auth", str(error), code="NO_CONNECTION")) from None


@asynccontextmanager
async def _duckdb(
    database: str | None, context: ToolContext, texts: Sequence[str] | None = None
) -> AsyncIterator[tuple[Any, Run, str]]:
    try:
        import duckdb  # noqa: F401 - fail early if it is missing
    except ModuleNotFoundError:
        raise RowsError(missing_library("duckdb", "DuckDB")) from None
    async with duckdb_connection(database, context, texts=texts) as opened:
        yield opened


async def _from_duckdb(source: Place, most: int, context: ToolContext) -> AsyncGenerator[Chunk, None]:
    if source.database is None:
        raise _lacks("duckdb", "database")
    query = _query(source)
    async with _duckdb(source.database, context, [query]) as (connection, run, _):
        async for chunk in _select(connection, run, query, source.params, most):
            yield chunk


async def _select(connection: Any, run: Run, sql: str, params: Any, most: int) -> AsyncGenerator[Chunk, None]:
    await run(connection.execute, sql, params)
    columns = [column[0] for column in connection.description or ()]
    while rows := await run(connection.fetchmany, most):
        yield from_database(columns, rows)


@asynccontextmanager
async def _to_duckdb(target: Place, how: SqlInput, context: ToolContext) -> AsyncIterator[Add]:
    if target.database is None or not target.table:
        raise _lacks("duckdb", "database" if target.database is None else "table")
    async with _duckdb(target.database, context) as (connection, run, own):
        with TemporaryDirectory(prefix="noetl-", dir=own or None) as folder:
            path = Path(folder, "rows.jsonl")
            await run(connection.execute, "BEGIN")
            if how.mode == "overwrite":
                await run(connection.execute, f"DELETE FROM {name(target.table)}")
            described = await run(lambda: connection.execute(f"DESCRIBE {name(how.table or '')}").fetchall())
            types = {str(row[0]): str(row[1]) for row in described}

            async def add(chunk: Chunk) -> None:
                path.write_bytes(_lines(chunk.rows))
                await run(connection.execute, _insert(how, chunk.names, types), [str(path)])

            yield add
            await run(connection.execute, "COMMIT")


def _insert(how: SqlInput, columns: list[str], types: Mapping[str, str]) -> str:
    unknown = [column for column in columns if column not in types]
    if unknown:
        raise RowsError(failed("schema", f"the table {how.table} has no column `{unknown[0]}`"))
    told = ", ".join(f"{_quoted(column)}: {_quoted(types[column])}" for column in columns)
    given = f"SELECT {', '.join(map(name, columns))} FROM read_json(?, format='newline_delimited', columns={{{told}}})"
    mark = "\x00"
    head, _, tail = write_statement(how, columns, [mark]).partition(f"VALUES ({mark})")
    return head + given + tail


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# Files and HTTP


async def _from_files(source: Place, most: int, context: ToolContext) -> AsyncGenerator[Chunk, None]:
    if not source.path:
        raise _lacks("file", "path")
    folder = Path(context.folder, source.path)
    paths = sorted(folder.parent.glob(folder.name)) if "*" in folder.name else [folder]
    if not paths or not all(path.is_file() for path in paths):
        raise RowsError(failed("not_found", f"file not found: {folder}"))
    for path in paths:
        async for chunk in _from_file(path, _format(source, path), source.rows_path, most, context):
            yield chunk


async def _from_file(
    path: Path, format: str, rows_path: str | None, most: int, context: ToolContext
) -> AsyncGenerator[Chunk, None]:
    if format in ("csv", "parquet"):
        query = f"SELECT * FROM read_{format}(?)"
        async with _duckdb(None, context, [query]) as (connection, run, _):
            async for chunk in _select(connection, run, query, [str(path)], most):
                yield chunk
        return
    async with context.thread() as thread:
        with await in_own_thread(thread, open_file, path, thread.walls.is_open) as file:
            if format == "jsonl":
                found: Iterator[Any] = (_parse(line, path.name) for line in file if line.strip())
            else:
                found = iter(_inside(_parse(await thread.run(file.read), path.name), rows_path))
            while rows := await thread.run(lambda: list(islice(found, most))):
                yield Maps(_maps(rows))


async def _from_http(source: Place, most: int, context: ToolContext) -> AsyncGenerator[Chunk, None]:
    if not source.url:
        raise _lacks("http", "url")
    with TemporaryDirectory(prefix="noetl-") as folder:
        path = Path(folder, "answer")
        try:
            request = WebRequest(url=source.url, headers=source.headers or {})
            async with context.web().send(request) as response:
                status, after = response.status, retry_after(response.headers, context.now())
                with path.open("wb") as file:
                    async for part in response.parts():
                        file.write(part)
        except PermissionError as error:
            raise RowsError(failed("client_error", str(error), code="EGRESS_DENIED")) from None
        except ValueError as error:
            raise RowsError(failed("client_error", f"cannot read {source.url}: {error}")) from None
        except WebError as error:
            raise RowsError(failed("connection", f"cannot read {source.url}: {error}", retryable=True)) from None
        if status >= 300:
            kind: Any = "rate_limit" if status == 429 else "server_error" if status >= 500 else "client_error"
            again = status in (408, 429) or status >= 500
            message = f"{source.url} responded with {status}"
            code, helper = f"HTTP_{status}", {"status": status}
            raise RowsError(failed(kind, message, code=code, retryable=again, retry_after=after, http=helper))
        format = source.format or _FORMATS.get(Path(source.url.partition("?")[0]).suffix, "json")
        async for chunk in _from_file(path, format, source.rows_path, most, context):
            yield chunk


def _parse(text: bytes, where: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise RowsError(failed("parse", f"{where} is not JSON: {error}")) from None


def _inside(value: Any, rows_path: str | None) -> list[Any]:
    if rows_path:
        try:
            found = matches(value, rows_path)
        except InvalidInput as error:
            raise RowsError(failed("schema", f"`rows_path`: {error}")) from None
        value = found[0] if len(found) == 1 and isinstance(found[0], list) else found
    if not isinstance(value, list):
        raise RowsError(failed("schema", "the JSON is not a list of rows; set `rows_path` to the path of the rows"))
    return value


def _format(place: Place, path: Path) -> str:
    found = place.format or _FORMATS.get(path.suffix.lower())
    if found is None:
        raise RowsError(failed("schema", f"cannot derive the format of {path.name}; set `format`"))
    return found


@asynccontextmanager
async def _to_file(target: Place, how: SqlInput, context: ToolContext) -> AsyncIterator[Add]:
    if not target.path:
        raise _lacks("file", "path")
    keyed = by_key(how.mode, how.key)
    if how.mode == "upsert" and keyed is None:
        raise RowsError(
            failed("schema", "a file has no primary key: with `mode: upsert`, set `key` to the key columns")
        )
    path = Path(context.folder, target.path)
    format = _format(target, path)
    async with context.thread() as thread:
        folder = await in_own_thread(thread, _folder_beside, path)
        try:
            lines, whole = Path(folder, "rows.jsonl"), Path(folder, "whole")

            async def add(chunk: Chunk) -> None:
                await thread.run(_append, lines, chunk.rows)

            await add(Maps([]))
            old = _from_file(path, format, None, 10_000, context)
            there = how.mode != "overwrite" and path.is_file()
            if there and keyed is None:
                async for chunk in old:
                    await add(chunk)
            yield add if keyed is None else keyed.add
            if keyed is not None:
                if there:
                    async for chunk in old:
                        await add(Maps(keyed.over(chunk.rows)))
                await add(Maps(keyed.rest()))
            if format == "parquet":
                await _to_parquet(lines, whole, context)
            else:
                await thread.run(_convert_lines, lines, whole, format)
            await in_own_thread(thread, whole.replace, path)
        finally:
            await thread.run(partial(shutil.rmtree, folder, ignore_errors=True))


def _folder_beside(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    return mkdtemp(prefix=".noetl-", dir=path.parent)


def _append(lines: Path, rows: list[Row]) -> None:
    with lines.open("ab") as file:
        file.write(_lines(rows))


async def _to_parquet(lines: Path, whole: Path, context: ToolContext) -> None:
    async with _duckdb(None, context) as (connection, run, _):
        sql = f"COPY (SELECT * FROM read_json({_quoted(str(lines))})) TO {_quoted(str(whole))} (FORMAT parquet)"
        await run(connection.execute, sql)


def _convert_lines(lines: Path, whole: Path, format: str) -> None:
    with lines.open("rb") as given, whole.open("w", encoding="utf-8", newline="") as out:
        if format == "jsonl":
            out.writelines(line.decode() for line in given)
        elif format == "json":
            out.write("[")
            out.writelines(("" if at == 0 else ",") + "\n" + line.decode().strip() for at, line in enumerate(given))
            out.write("\n]\n")
        else:
            _as_csv(given, out)


def _as_csv(given: io.BufferedReader, out: io.TextIOWrapper) -> None:
    columns: list[str] = []
    writer = csv.writer(out)
    for line in given:
        row = msgspec.json.decode(line)
        if not columns:
            columns = list(row)
            writer.writerow(columns)
        writer.writerow([_cell(row.get(column)) for column in columns])


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) else value


def _lines(rows: Sequence[Row]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def _maps(rows: list[Any]) -> list[Row]:
    for row in rows:
        if not isinstance(row, dict):
            raise RowsError(failed("schema", f"a row must be a map from column to value, not {row!r:.100}"))
    return rows
