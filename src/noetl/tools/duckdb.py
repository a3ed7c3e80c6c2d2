"""Kind `duckdb`: SQL on files and tables inside the worker."""

from functools import partial
from typing import Annotated, Any

from noetl.dsl.grammar.kinds import Need
from noetl.model.outcome import Outcome, ok
from noetl.ports import ToolContext
from noetl.tools.contract import about, describe
from noetl.tools.fields import SQL_FORMS, SQL_RESULT, TABLE_NEEDS, MarkerTable, SqlInput, Transactional, UnreadableError
from noetl.tools.sql.completion_markers import in_transaction, once_in_duckdb, refuse_transaction_control
from noetl.tools.sql.connections import duckdb_connection, duckdb_failed, missing_library
from noetl.tools.sql.statements import (
    ROWS_AT_ONCE,
    RowLimit,
    RowsError,
    answer,
    name,
    result_of,
    rows_to_write,
    statements,
    write_statement,
)


class Input(SqlInput, frozen=True, kw_only=True):
    """SQL to run, or rows to write, and its database."""

    database: Annotated[str, about("Database file; `:memory:` is discarded after the task.", "./sales.duckdb")] = (
        ":memory:"
    )
    transactional: Transactional = False
    marker_table: MarkerTable = None
    read_only: Annotated[bool, about("Open the file read-only, so that several tasks can share it.", True)] = False
    extensions: Annotated[list[str] | None, about("Extensions to install and load first.", ["httpfs"])] = None


KIND = describe(
    Input,
    name="duckdb",
    summary="Run SQL with DuckDB, inside the worker.",
    description="""
    Reads and joins files (Parquet, CSV, JSON), object stores and other databases without a server. `auth` names the credential
    of attached sources; a map names several. The driver binds `params` (`$name` or `?`). In templates, iterating over the
    result yields its rows. With `table` no SQL is needed: see the kind `postgres` for the modes and for `transactional`.
    """,
    one_of=(SQL_FORMS,),
    needs=(*TABLE_NEEDS, Need("marker_table", ("transactional",))),
    result=SQL_RESULT,
    extra="duckdb",
    examples="""
    # Sum up a folder of files
    - totals:
        kind: duckdb
        query: |
          SELECT region, sum(amount) AS amount
          FROM read_parquet('{{ workload.folder }}/*.parquet')
          GROUP BY region

    # Several statements on a database file
    - name: load
      kind: duckdb
      database: "{{ workload.folder }}/sales.duckdb"
      commands:
        - CREATE TABLE IF NOT EXISTS sales (region TEXT, amount DOUBLE)
        - INSERT INTO sales SELECT region, amount FROM read_csv('{{ workload.folder }}/new.csv')
        - SELECT count(*) AS n FROM sales
      set:
        ctx.sales: "{{ output.data.rows[0].n }}"
    """,
)


async def run(input: Input, context: ToolContext) -> Outcome:
    try:
        import duckdb
    except ModuleNotFoundError:
        return missing_library("duckdb", "DuckDB")
    try:
        sent = await statements(input, context)
    except UnreadableError as error:
        return error.outcome
    problem = refuse_transaction_control(sent) if input.transactional else None
    if problem is not None:
        return problem
    try:
        only_sent = not (input.extensions or input.table or input.transactional or context.confirm)
        opening = duckdb_connection(
            input.database, context, read_only=input.read_only, texts=sent if only_sent else None
        )
        async with opening as (connection, run, _):
            found = ok(await run(_perform, connection, input, sent, context))
            if context.confirm is not None:  # keep the transaction open until the claimed rows are recorded
                await run(connection.commit if await context.confirm(found) else connection.rollback)
            return found
    except RowsError as error:
        return error.outcome
    except (duckdb.Error, PermissionError) as error:
        return duckdb_failed(error)


def _perform(connection: Any, input: Input, sent: list[str], context: ToolContext) -> dict[str, Any]:
    for extension in input.extensions or ():
        connection.execute(f"INSTALL {name(extension)}")
        connection.execute(f"LOAD {name(extension)}")
    if context.confirm is not None:
        connection.begin()  # ended once the claimed rows are recorded
        return _all(connection, input, sent)
    work = partial(_write, connection, input, context) if input.table else partial(_all, connection, input, sent)
    if input.transactional:
        return once_in_duckdb(connection, input.marker_table, context, work)
    return in_transaction(connection, work) if input.table else work()


def _all(connection: Any, input: Input, sent: list[str]) -> dict[str, Any]:
    answers, limit = [], RowLimit()
    for text in sent:
        for statement in connection.extract_statements(text):
            cursor = connection.execute(statement, _bind(input.params, statement.named_parameters))
            answers.append(_read(cursor, statement, limit))
    return result_of(answers)


def _bind(params: Any, wanted: set[str]) -> Any:
    """Return only the parameters of a statement: the driver refuses others."""
    if not wanted:
        return None
    if isinstance(params, dict):
        return {key: value for key, value in params.items() if key in wanted}
    return params


def _read(cursor: Any, statement: Any, limit: RowLimit) -> dict[str, Any]:
    status = statement.type.name
    columns = [column[0] for column in cursor.description or ()]
    if status in ("INSERT", "UPDATE", "DELETE", "COPY") and columns == ["Count"]:
        count = (cursor.fetchone() or (0,))[0]
        return answer((), [], count, f"{status} {count}")
    rows: list[dict[str, Any]] = []
    while columns and (batch := cursor.fetchmany(ROWS_AT_ONCE)):
        rows += limit.plain(columns, batch)
    return answer(columns, rows, None, f"{status} {len(rows)}")


def _write(connection: Any, input: Input, context: ToolContext) -> dict[str, Any]:
    rows = rows_to_write(input, context)
    if input.mode == "overwrite":
        connection.execute(f"DELETE FROM {name(input.table or '')}")
    for row in rows:
        connection.execute(write_statement(input, list(row), ["?"] * len(row)), list(row.values()))
    return result_of([answer((), [], len(rows), f"INSERT {len(rows)}")])
