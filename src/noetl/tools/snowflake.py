"""Kind `snowflake`: SQL, or rows for a table, in a Snowflake account."""

from typing import Annotated

from noetl.tools.contract import about, describe
from noetl.tools.fields import SQL_FORMS, SQL_RESULT, TABLE_NEEDS, SqlInput


class Input(SqlInput, frozen=True, kw_only=True):
    """SQL to run, or rows to write, and its session."""

    account: Annotated[str | None, about("Account, unless the credential has it.", "acme-eu1")] = None
    warehouse: Annotated[str | None, about("Warehouse.", "LOAD_WH")] = None
    database: Annotated[str | None, about("Default database.", "SALES")] = None
    schema: Annotated[str | None, about("Default schema.", "PUBLIC")] = None
    role: Annotated[str | None, about("Role of the session.", "LOADER")] = None


KIND = describe(
    Input,
    name="snowflake",
    summary="Run SQL on Snowflake, or write rows to a table.",
    description="""
    `auth` names the credential: a user with a password or a key pair, and the account. Session fields of the task override
    those of the credential. Templates in SQL, `params` and `table` work as in the kind `postgres`.
    """,
    one_of=(SQL_FORMS,),
    needs=TABLE_NEEDS,
    result=SQL_RESULT,
    built=False,
    examples="""
    # Sum up in the warehouse
    - totals:
        kind: snowflake
        auth: sf_main
        warehouse: REPORT_WH
        database: SALES
        query: SELECT region, SUM(amount) AS amount FROM orders WHERE day >= '{{ workload.since }}' GROUP BY region

    # Write rows without SQL
    - name: save
      kind: snowflake
      credential: sf_main
      schema: STAGING
      table: orders
      mode: append
      values: "{{ workload.orders }}"
    """,
)
