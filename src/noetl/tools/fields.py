"""The input fields that several tool kinds share: scripts kept elsewhere, SQL statements, rows for a table.

Kinds stay independent of each other and take what they have in common from here. Tested in tests/tools/test_registry.py.
"""

from typing import Annotated, Any, Literal

from noetl.dsl.kinds import Need
from noetl.tools.contract import Seconds, Sql, ToolInput, about

WriteMode = Literal["insert", "append", "upsert", "overwrite"]
Environment = Annotated[
    dict[str, str | int | float | bool] | None,
    about("Environment variables, over those of the worker.", {"LOG_LEVEL": "debug"}),
]


class ScriptSource(ToolInput, frozen=True, kw_only=True):
    """How the text of a script is fetched."""

    type: Annotated[Literal["inline", "file", "http", "s3", "gcs"], about("Where the text lives.", "gcs")]
    auth: Annotated[str | None, about("The credential that may read it.", "gcs_reader", aliases=("credential",))] = None
    endpoint: Annotated[str | None, about("With `s3`: the address of another object store.")] = None
    region: Annotated[str | None, about("With `s3`: the region of the bucket.", "eu-central-1")] = None
    method: Annotated[Literal["GET", "POST"], about("With `http`: how to ask for it.")] = "GET"
    headers: Annotated[dict[str, str] | None, about("With `http`: headers of the request.")] = None
    timeout: Annotated[Seconds | None, about("Seconds that fetching may take.", 10)] = None


class Script(ToolInput, frozen=True, kw_only=True):
    """A text kept outside the playbook and read when the task runs."""

    uri: Annotated[str | None, about("Its address: a file's path, or where the source keeps it.", "./load.sql")] = None
    content: Annotated[str | None, about("The text itself, with a source of type `inline`.", rendered="")] = None
    source: Annotated[
        ScriptSource | None, about("How to fetch it; without it the address tells.", {"type": "file"})
    ] = None


class SqlInput(ToolInput, frozen=True, kw_only=True):
    """SQL to run, or rows to write to a table without SQL."""

    command: Annotated[Sql | None, about("SQL: one statement or several.", "DELETE FROM cache")] = None
    query: Annotated[Sql | None, about("SQL that reads; means the same as `command`.", "SELECT 1 AS one")] = None
    commands: Annotated[Sql | list[Sql] | None, about("SQL as a list of statements, or as one text.", ["SELECT 1"])] = (
        None
    )
    script: Annotated[Script | None, about("SQL kept outside the playbook.", {"uri": "./load.sql"})] = None
    params: Annotated[
        dict[str, Any] | list[Any] | None,
        about("Values that the driver binds: a map by name, a list by place.", {"id": 7}),
    ] = None
    table: Annotated[str | None, about("A table to write rows to, instead of SQL.", "public.orders")] = None
    mode: Annotated[WriteMode | None, about("How rows meet what the table holds; `insert` by default.", "upsert")] = (
        None
    )
    key: Annotated[
        str | list[str] | None,
        about("With `upsert`: the columns that tell rows apart; by default the task's idempotency key.", "order_id"),
    ] = None
    values: Annotated[
        dict[str, Any] | list[dict[str, Any]] | None,
        about("A row or a list of rows; without it the task's `input` is the row.", {"order_id": 7, "state": "paid"}),
    ] = None


SQL_FORMS = ("command", "query", "commands", "script", "table")
TABLE_NEEDS = (Need("mode", ("table",)), Need("key", ("table",)), Need("values", ("table",)))
SQL_RESULT = {
    "rows": "The rows of the last statement, each a map from column to value.",
    "row_count": "How many rows it gave or touched.",
    "columns": "The names of its columns, in order.",
    "status": "What the database said of it, such as `INSERT 0 3`.",
    "command_<i>": "The same fields for each statement, counted from 0.",
}
PROCESS_RESULT = {
    "returncode": "The exit code.",
    "stdout": "What it wrote to standard output, as text.",
    "stderr": "What it wrote to standard error, as text.",
}
