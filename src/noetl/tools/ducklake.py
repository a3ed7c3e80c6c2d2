"""Kind `ducklake`: SQL on a lake of Parquet files with a shared catalog."""

from typing import Annotated

from noetl.tools.contract import Count, about, describe
from noetl.tools.fields import SQL_FORMS, SQL_RESULT, TABLE_NEEDS, SqlInput


class Input(SqlInput, frozen=True, kw_only=True):
    """SQL to run, or rows to write, and its lake."""

    catalog: Annotated[
        str | None,
        about(
            "Catalog of the lake: a file or a connection; not needed if `auth` has it.",
            "metadata.ducklake",
            aliases=("catalog_connection",),
        ),
    ] = None
    catalog_name: Annotated[str, about("Name of the lake in SQL, also its default database.", "sales")] = "lake"
    data_path: Annotated[str | None, about("Where a new lake stores its files.", "s3://lake/sales")] = None
    create_catalog: Annotated[bool, about("Create the catalog if it does not exist.", False)] = True
    snapshot: Annotated[Count | None, about("Read the lake as of this snapshot.", 42)] = None


KIND = describe(
    Input,
    name="ducklake",
    summary="Run SQL on a DuckLake: Parquet files with a shared catalog.",
    description="""
    Several workers can read and write one lake concurrently: the catalog (PostgreSQL, SQLite or a file) orders their
    transactions. `auth` names the credential of the catalog; a map names those of the catalog and of the object store.
    Everything else works as in the kind `duckdb`.
    """,
    one_of=(SQL_FORMS,),
    needs=TABLE_NEEDS,
    result=SQL_RESULT,
    built=False,
    examples="""
    # Add rows to a lake
    - append:
        kind: ducklake
        auth: lake_catalog
        data_path: "{{ workload.folder }}/lake"
        command: INSERT INTO orders SELECT * FROM read_json('{{ workload.folder }}/orders.json')

    # Read an earlier state
    - name: before
      kind: ducklake
      catalog: metadata.ducklake
      snapshot: 42
      query: SELECT count(*) AS n FROM orders
      set:
        ctx.orders_before: "{{ output.data.rows[0].n }}"
    """,
)
