"""Kind `transfer`: copy rows from one place to another, in chunks."""

from contextlib import aclosing
from time import perf_counter
from typing import Annotated, Any, Literal

import msgspec

from noetl.model.outcome import Outcome, ok
from noetl.ports import ToolContext
from noetl.tools.contract import Sql, ToolInput, about, describe
from noetl.tools.fields import SqlInput, WriteMode
from noetl.tools.sql.connections import duckdb_failed, pg_failed
from noetl.tools.sql.pg_pool import NoConnectionError
from noetl.tools.sql.rows import Place, read_rows, write_rows
from noetl.tools.sql.statements import RowsError

Format = Literal["csv", "json", "jsonl", "parquet"]
Rows = Annotated[int, msgspec.Meta(ge=1)]


class Source(ToolInput, frozen=True, kw_only=True):
    """Source of the rows."""

    kind: Annotated[
        Literal["postgres", "snowflake", "duckdb", "ducklake", "http", "file", "s3", "gcs", "azure"],
        about(
            "Kind of the source. This version has `postgres`, `duckdb`, `file` and `http`.",
            "postgres",
            aliases=("type",),
        ),
    ]
    auth: Annotated[str | None, about("Credential to read with.", "pg_main", aliases=("credential",))] = None
    query: Annotated[Sql | None, about("With a database: SQL that returns the rows.", "SELECT * FROM orders")] = None
    table: Annotated[str | None, about("With a database: a table, instead of a query.", "public.orders")] = None
    params: Annotated[dict[str, Any] | list[Any] | None, about("Bound parameters of the query.")] = None
    database: Annotated[str | None, about("Database or database file.", "./sales.duckdb")] = None
    url: Annotated[str | None, about("With `http`: URL.", aliases=("endpoint",))] = None
    method: Annotated[Literal["GET"], about("With `http`: method of the request.")] = "GET"
    headers: Annotated[dict[str, str] | None, about("With `http`: request headers.")] = None
    path: Annotated[str | None, about("With files and object stores: the file, or several with `*`.", "in/*.csv")] = (
        None
    )
    format: Annotated[
        Format | None, about("Format of a file or response; by default derived from its name.", "parquet")
    ] = None
    rows_path: Annotated[
        str | None, about("JSON path of the rows in a JSON document.", "$.data.items", aliases=("data_path",))
    ] = None


class Target(ToolInput, frozen=True, kw_only=True):
    """Target of the rows."""

    kind: Annotated[
        Literal["postgres", "snowflake", "duckdb", "ducklake", "file", "s3", "gcs", "azure"],
        about("Kind of the target. This version has `postgres`, `duckdb` and `file`.", "duckdb", aliases=("type",)),
    ]
    auth: Annotated[str | None, about("Credential to write with.", "sf_main", aliases=("credential",))] = None
    table: Annotated[str | None, about("With a database: table.", "staging.orders")] = None
    database: Annotated[str | None, about("Database or database file.", "./sales.duckdb")] = None
    key: Annotated[str | list[str] | None, about("With `mode: upsert`: key columns.", "id")] = None
    columns: Annotated[
        dict[str, str] | list[str] | None,
        about("Columns to write; a map is from the target's name to the source's.", aliases=("mapping",)),
    ] = None
    path: Annotated[str | None, about("With files and object stores: file.", "out/orders.parquet")] = None
    format: Annotated[Format | None, about("Format of the file; by default derived from its name.", "parquet")] = None


class Input(ToolInput, frozen=True, kw_only=True):
    """Rows to copy."""

    source: Annotated[Source, about("Source of the rows.", {"kind": "postgres", "table": "orders"})]
    target: Annotated[Target, about("Target of the rows.", {"kind": "duckdb", "table": "orders"})]
    mode: Annotated[WriteMode, about("How to write rows.", "upsert")] = "append"
    chunk_size: Annotated[Rows, about("Rows per chunk.", 50000)] = 10000


KIND = describe(
    Input,
    name="transfer",
    summary="Copy rows between databases, files and object stores.",
    description="""
    Rows stream in chunks, so a table of any size needs little memory. All chunks are one transaction, and a file is replaced
    atomically: a failed transfer leaves the target unchanged. `insert` and `append` add rows to a table or a file, `upsert`
    updates rows with the same key, `overwrite` replaces all rows. The table must exist, with its columns.
    """,
    result={
        "row_count": "Number of rows written.",
        "chunks": "Number of chunks.",
        "bytes": "Number of bytes read.",
        "elapsed": "Duration in seconds.",
    },
    examples="""
    # A query into a table elsewhere
    - load:
        kind: transfer
        source:
          kind: postgres
          auth: pg_main
          query: SELECT id, amount FROM orders WHERE day >= '{{ workload.since }}'
        target:
          kind: snowflake
          auth: sf_main
          table: staging.orders
          key: id
        mode: upsert
        chunk_size: 50000

    # A table into a file
    - name: export
      kind: transfer
      source: { kind: postgres, auth: pg_main, table: public.orders }
      target: { kind: file, path: "{{ workload.folder }}/orders.parquet" }
      set:
        ctx.exported: "{{ output.data.row_count }}"
    """,
)


async def run(input: Input, context: ToolContext) -> Outcome:
    began = perf_counter()
    target = input.target
    source = msgspec.convert(input.source, Place, from_attributes=True)
    place = msgspec.convert(target, Place, from_attributes=True)
    write = SqlInput(table=target.table, mode=input.mode, key=target.key)
    chunks = size = count = 0
    try:
        reading = read_rows(source, input.chunk_size, context)
        async with aclosing(reading), write_rows(place, write, context) as add:
            async for chunk in reading:
                size += chunk.size
                await add(chunk if target.columns is None else chunk.renamed(_names(target.columns)))
                chunks, count = chunks + 1, count + len(chunk)
    except RowsError as error:
        return error.outcome
    except Exception as error:
        known = _driver_outcome(error)
        if known is None:
            raise
        return known
    elapsed = round(perf_counter() - began, 6)
    return ok({"row_count": count, "chunks": chunks, "bytes": size, "elapsed": elapsed})


def _names(columns: dict[str, str] | list[str]) -> dict[str, str]:
    return columns if isinstance(columns, dict) else dict(zip(columns, columns, strict=True))


def _driver_outcome(error: Exception) -> Outcome | None:
    """Convert a driver's error to an outcome; None for any other error."""
    home = type(error).__module__.partition(".")[0]
    if home == "psycopg" or isinstance(error, NoConnectionError):
        return pg_failed(error)
    return duckdb_failed(error) if home in ("duckdb", "_duckdb") or isinstance(error, PermissionError) else None
