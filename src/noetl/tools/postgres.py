"""Kind `postgres`: SQL, or rows for a table, on a PostgreSQL server."""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import msgspec

from noetl.dsl.grammar.kinds import Need
from noetl.model.outcome import Outcome, failed, ok
from noetl.ports import Confirm, ToolContext
from noetl.tools.contract import Count, Seconds, ToolInput, about, describe
from noetl.tools.fields import SQL_FORMS, SQL_RESULT, TABLE_NEEDS, MarkerTable, SqlInput, Transactional, UnreadableError
from noetl.tools.sql.completion_markers import once_in_postgres, refuse_transaction_control
from noetl.tools.sql.connections import missing_library, pg_failed, pg_pool
from noetl.tools.sql.pg_pool import MOST_CONNECTIONS, NoConnectionError, PoolSize
from noetl.tools.sql.statements import (
    ROWS_AT_ONCE,
    RowLimit,
    RowsError,
    answer,
    name,
    percent_statement,
    result_of,
    rows_to_write,
    statements,
)

Many = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class Pool(ToolInput, frozen=True, kw_only=True):
    """Size of the worker's pool of connections for a credential."""

    min_size: Annotated[Count, about("Connections to keep open.", 1)] = 0
    max_size: Annotated[Many, about("Maximum number of connections at once; other tasks wait.", 20)] = MOST_CONNECTIONS
    timeout: Annotated[
        Seconds | None, about("How long a task waits for a connection, in seconds; by default without limit.", 30)
    ] = None
    max_waiting: Annotated[Count | None, about("Maximum number of tasks that wait; further ones fail.", 200)] = None
    max_lifetime: Annotated[Seconds | None, about("Age at which a connection is replaced, in seconds.", 3600)] = None
    max_idle: Annotated[Seconds | None, about("How long an unused connection is kept, in seconds.", 300)] = None
    name: Annotated[str | None, about("Name of the pool, which has no effect.", "orders")] = None


class Input(SqlInput, frozen=True, kw_only=True):
    """SQL to run, or rows to write."""

    pool: Annotated[
        Pool | None,
        about("Size of the worker's pool for the credential, shared by all tasks with it.", {"max_size": 20}),
    ] = None
    transactional: Transactional = False
    marker_table: MarkerTable = None


KIND = describe(
    Input,
    name="postgres",
    summary="Run SQL on PostgreSQL, or write rows to a table.",
    description="""
    `auth` names the credential of the connection. A template in SQL is never inserted as plain text: it becomes a literal,
    escaped text or a quoted name, depending on its position. The driver binds `params` (`%(name)s` or `%s`). One string may
    contain several statements. With `table` no SQL is needed: `mode: insert` and `append` add rows, `upsert` updates the row
    with the same `key`, `overwrite` replaces all rows. With `transactional: true` all writes of the task and a completion marker
    under its idempotency key are one transaction: a run repeated after a crash finds the marker, writes nothing and returns the
    recorded result. `spec.timeout: {connect, read}` limits connecting and queries, in seconds.
    """,
    one_of=(SQL_FORMS,),
    needs=(*TABLE_NEEDS, Need("marker_table", ("transactional",))),
    result=SQL_RESULT,
    helper=("pg", {"code": "SQLSTATE of the error, such as `40P01`.", "sqlstate": "Same as `code`."}),
    extra="postgres",
    examples="""
    # Write, and retry after a deadlock
    - store:
        kind: postgres
        auth: pg_main
        command: |
          INSERT INTO orders (id, customer) VALUES ({{ workload.order_id }}, '{{ workload.customer_id }}')
          ON CONFLICT (id) DO UPDATE SET customer = EXCLUDED.customer
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' and outcome.pg.code in ['40001', '40P01'] }}"
                then: { do: retry, attempts: 5, backoff: exponential, delay: 1 }
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
              - else:
                  then: { do: continue }

    # Read with bound parameters and keep part of the result
    - name: open_orders
      kind: postgres
      auth: pg_main
      query: SELECT id, amount FROM orders WHERE state = %(state)s
      params: { state: open }
      set:
        ctx.open_orders: "{{ output.data.row_count }}"

    # Write a row without SQL, idempotently
    - save_state:
        kind: postgres
        auth: pg_main
        table: run_state
        mode: upsert
        key: execution_id
        args: { execution_id: "{{ execution_id }}", state: ok }

    # Apply a change exactly once, even if the worker crashes
    - book:
        kind: postgres
        auth: pg_main
        transactional: true
        command: |
          UPDATE account SET balance = balance - 1 WHERE id = {{ workload.customer_id }};
          INSERT INTO booking (customer, amount) VALUES ({{ workload.customer_id }}, 1)
    """,
)


async def run(input: Input, context: ToolContext) -> Outcome:
    try:
        import psycopg
    except ModuleNotFoundError:
        return missing_library("postgres", "psycopg")
    if input.pool is not None and input.pool.min_size > input.pool.max_size:
        sizes = f"`pool.min_size` is {input.pool.min_size}, more than `pool.max_size`, {input.pool.max_size}"
        return failed("schema", sizes)
    try:
        sent = await statements(input, context)
        problem = refuse_transaction_control(sent) if input.transactional else None
        if problem is not None:
            return problem
        pool = await pg_pool(context.auth, context)
        if input.pool is not None:
            pool.resize(PoolSize(**{name: getattr(input.pool, name) for name in PoolSize.__struct_fields__}))
    except UnreadableError as error:
        return error.outcome
    except KeyError as error:
        return failed("auth", f"unknown credential {error}", code="NO_CREDENTIAL")
    except ValueError as error:
        return failed("auth", str(error), code="NO_CONNECTION")
    connect_s, read_s = _limits(context.spec.get("timeout"))
    try:
        async with asyncio.timeout(None) as limit, pool.connection(connect_s) as connection:
            if read_s is not None:
                limit.reschedule(asyncio.get_running_loop().time() + read_s)
            return await _perform(connection, pool.markers, input, sent, context)
    except RowsError as error:
        return error.outcome
    except TimeoutError:
        return failed("timeout", f"the database did not respond within {read_s} s", retryable=True, sent=True)
    except (psycopg.Error, NoConnectionError) as error:
        return pg_failed(error)


def _limits(given: Any) -> tuple[float | None, float | None]:
    """Return the connect and read time-outs, in seconds."""
    parts = given if isinstance(given, Mapping) else {}
    connect, read = parts.get("connect"), parts.get("read")
    return None if connect is None else float(connect), None if read is None else float(read)


async def _perform(
    connection: Any, markers: dict[str, tuple[str, int]], input: Input, sent: list[str], context: ToolContext
) -> Outcome:
    if context.confirm is not None:
        return await _claim(connection, input, sent, context.confirm)
    if input.transactional:
        work = partial(_work, connection, input, sent, context)
        return await once_in_postgres(connection, markers, input.marker_table, context, work)
    if input.table is None:
        return ok(await _all(connection, input, sent))
    async with connection.transaction():
        return ok(await _work(connection, input, sent, context))


async def _work(connection: Any, input: Input, sent: list[str], context: ToolContext) -> dict[str, Any]:
    if input.table is None:
        return await _all(connection, input, sent)
    return result_of([await _write(connection, input, context)])


async def _claim(connection: Any, input: Input, sent: list[str], confirm: Confirm) -> Outcome:
    """Claim rows: keeps the transaction open until the claim is recorded."""
    from psycopg import Rollback

    async with connection.transaction() as transaction:
        found = ok(await _all(connection, input, sent))
        if not await confirm(found):
            raise Rollback(transaction)
    return found


async def _all(connection: Any, input: Input, sent: list[str]) -> dict[str, Any]:
    answers, limit = [], RowLimit()
    async with connection.cursor() as cursor:
        for text in sent:
            await cursor.execute(text, _bind(input.params, text))
            columns = [column.name for column in cursor.description or ()]
            rows: list[dict[str, Any]] = []
            while columns and (batch := await cursor.fetchmany(ROWS_AT_ONCE)):
                rows += limit.plain(columns, batch)
            count = None if columns else max(cursor.rowcount, 0)
            answers.append(answer(columns, rows, count, cursor.statusmessage or ""))
    return result_of(answers)


def _bind(params: Any, text: str) -> Any:
    """Return a statement's parameters, or None: then percent signs are literal."""
    if not params or "%" not in text:
        return None
    if isinstance(params, Mapping):
        return {key: _bindable(value) for key, value in params.items()} if "%(" in text else None
    return [_bindable(value) for value in params] if "%s" in text else None


def _bindable(value: Any) -> Any:
    """Keep lists as arrays; send a map, and a list that contains one, as JSON."""
    from psycopg.types.json import Jsonb

    if isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(x, Mapping | list) for x in value)):
        return Jsonb(value, dumps=json.dumps)
    return value


async def _write(connection: Any, input: Input, context: ToolContext) -> dict[str, Any]:
    rows = rows_to_write(input, context)
    async with connection.cursor() as cursor:
        if input.mode == "overwrite":
            await cursor.execute(f"DELETE FROM {name(input.table or '')}")
        for row in rows:
            await cursor.execute(percent_statement(input, list(row)), [_bindable(value) for value in row.values()])
    return answer((), [], len(rows), f"INSERT 0 {len(rows)}")
