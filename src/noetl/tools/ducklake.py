"""Describes the kind `ducklake`: SQL on a lake of Parquet files that share one catalog."""

from typing import Annotated

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import Count, about, describe
from noetl.tools.fields import SQL_FORMS, SQL_RESULT, TABLE_NEEDS, SqlInput


class Input(SqlInput, frozen=True, kw_only=True):
    """SQL to run, or rows to write, and the lake to do it in."""

    catalog: Annotated[
        str | None,
        about(
            "Where the lake's catalog is kept: a file or a connection; not needed when `auth` holds it.",
            "metadata.ducklake",
            aliases=("catalog_connection",),
        ),
    ] = None
    catalog_name: Annotated[str, about("The name of the lake in SQL; it is the default one.", "sales")] = "lake"
    data_path: Annotated[str | None, about("Where a new lake keeps its files.", "s3://lake/sales")] = None
    create_catalog: Annotated[bool, about("Make the catalog when it is not there yet.", False)] = True
    snapshot: Annotated[Count | None, about("Read the lake as it was at this snapshot.", 42)] = None


KIND = describe(
    Input,
    name="ducklake",
    summary="Runs SQL on a DuckLake: Parquet files with a shared catalog.",
    description="""
    Many workers may read and write one lake at once: the catalog (PostgreSQL, SQLite or a file) orders their transactions.
    `auth` names the credential of the catalog; a map names those of the catalog and of the object store. Everything else is as
    with the kind `duckdb`.
    """,
    one_of=(SQL_FORMS,),
    needs=TABLE_NEEDS,
    result=SQL_RESULT,
    extra="duckdb",
    examples=(
        KindExample(
            "Add rows to a lake",
            """
            - append:
                kind: ducklake
                auth: lake_catalog
                data_path: "{{ workload.folder }}/lake"
                command: INSERT INTO orders SELECT * FROM read_json('{{ workload.folder }}/orders.json')
            """,
        ),
        KindExample(
            "Read an earlier state",
            """
            - name: before
              kind: ducklake
              catalog: metadata.ducklake
              snapshot: 42
              query: SELECT count(*) AS n FROM orders
              set:
                ctx.orders_before: "{{ output.data.rows[0].n }}"
            """,
        ),
    ),
)
