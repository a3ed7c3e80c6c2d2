"""Describes the kind `postgres`: SQL, or rows for a table, on a PostgreSQL server."""

from typing import Annotated

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import about, describe
from noetl.tools.fields import SQL_FORMS, SQL_RESULT, TABLE_NEEDS, SqlInput


class Input(SqlInput, frozen=True, kw_only=True):
    """SQL to run, or rows to write."""

    transactional: Annotated[
        bool, about("Run all statements in one transaction; a lost answer may then be retried.", True)
    ] = False


KIND = describe(
    Input,
    name="postgres",
    summary="Runs SQL on PostgreSQL, or writes rows to a table.",
    description="""
    `auth` names the credential that holds the connection. A template in SQL is never pasted in as text: it becomes a literal,
    escaped text or a quoted name, by where it stands; `params` are bound by the driver (`%(name)s` or `%s`). One text may hold
    many statements. With `table` no SQL is needed: `mode: insert` and `append` add rows, `upsert` changes the row with the same
    `key`, `overwrite` replaces all rows.
    """,
    one_of=(SQL_FORMS,),
    needs=TABLE_NEEDS,
    result=SQL_RESULT,
    helper=(
        "pg",
        {
            "code": "The SQLSTATE of the error, such as `40P01`.",
            "sqlstate": "The same as `code`.",
        },
    ),
    extra="postgres",
    examples=(
        KindExample(
            "Write, and try again after a deadlock",
            """
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
            """,
        ),
        KindExample(
            "Read with bound values and keep a part of the result",
            """
            - name: open_orders
              kind: postgres
              auth: pg_main
              query: SELECT id, amount FROM orders WHERE state = %(state)s
              params: { state: open }
              set:
                ctx.open_orders: "{{ output.data.row_count }}"
            """,
        ),
        KindExample(
            "Write a row without SQL, safely when repeated",
            """
            - save_state:
                kind: postgres
                auth: pg_main
                table: run_state
                mode: upsert
                key: execution_id
                args: { execution_id: "{{ execution_id }}", state: ok }
            """,
        ),
    ),
)
