"""Describes the kind `duckdb`: SQL on files and tables inside the worker."""

from typing import Annotated

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import about, describe
from noetl.tools.fields import SQL_FORMS, SQL_RESULT, TABLE_NEEDS, SqlInput


class Input(SqlInput, frozen=True, kw_only=True):
    """SQL to run, or rows to write, and the database to do it in."""

    database: Annotated[str, about("The database file; `:memory:` is gone after the task.", "./sales.duckdb")] = (
        ":memory:"
    )
    read_only: Annotated[bool, about("Open the file for reading only, so that many tasks may share it.", True)] = False
    extensions: Annotated[list[str] | None, about("Extensions to install and load first.", ["httpfs"])] = None


KIND = describe(
    Input,
    name="duckdb",
    summary="Runs SQL with DuckDB, inside the worker.",
    description="""
    Reads and joins files (Parquet, CSV, JSON), object stores and other databases without a server. `auth` names the credential
    of what is attached; a map names several. `params` are bound by the driver (`$name` or `?`). In templates the result also
    iterates as its rows. With `table` no SQL is needed: see the kind `postgres` for the modes.
    """,
    one_of=(SQL_FORMS,),
    needs=TABLE_NEEDS,
    result=SQL_RESULT,
    extra="duckdb",
    examples=(
        KindExample(
            "Sum up a folder of files",
            """
            - totals:
                kind: duckdb
                query: |
                  SELECT region, sum(amount) AS amount
                  FROM read_parquet('{{ workload.folder }}/*.parquet')
                  GROUP BY region
            """,
        ),
        KindExample(
            "Several statements on a database file",
            """
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
        ),
    ),
)
