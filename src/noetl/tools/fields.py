"""What several tool kinds share: scripts kept elsewhere, processes, SQL statements, rows for a table.

Kinds stay independent of each other and take what they have in common from here. Tested in tests/tools/test_registry.py.
"""

import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from noetl.dsl.kinds import Need
from noetl.model.outcome import Outcome, failed, ok
from noetl.ports import ToolContext
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


TRANSACTIONAL = "Commit what it writes with a completion marker, so that a repeated run takes effect once."
MARKER_TABLE = "With `transactional`: the table of completion markers, by default `noetl_marker`."
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


class UnreadableError(Exception):
    """A script could not be fetched; the outcome says why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.error.message if outcome.error else "")
        self.outcome = outcome


async def script_text(script: Script, context: ToolContext) -> str:
    """Fetch the text of a script. Raises UnreadableError with the outcome that the task then has."""
    uri = script.uri or ""
    if script.content is not None and not uri:
        return script.content
    known = next((name for name, start in _ADDRESSES.items() if uri.startswith(start)), "file")
    kind = script.source.type if script.source else known
    if kind == "file":
        path = Path(context.folder, uri.removeprefix("file://"))
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            told = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise UnreadableError(failed("not_found", f"the script {path} cannot be read: {told}")) from None
    if kind == "http":
        return await _fetched(uri, script.source, context)
    raise UnreadableError(failed("client_error", f"scripts from a source of type `{kind}` cannot be fetched here."))


_ADDRESSES = {"http": ("http://", "https://"), "s3": ("s3://",), "gcs": ("gs://",)}


async def _fetched(uri: str, source: ScriptSource | None, context: ToolContext) -> str:
    method, headers = (source.method, source.headers) if source else ("GET", None)
    try:
        answer = await context.http.request(method, uri, headers=headers, timeout=source.timeout if source else None)
    except PermissionError as error:
        raise UnreadableError(failed("client_error", str(error), code="EGRESS_DENIED")) from None
    except Exception as error:  # noqa: BLE001 - the client has errors of its own, all of which mean the same here
        raise UnreadableError(
            failed("connection", f"the script {uri} cannot be fetched: {error}", retryable=True)
        ) from None
    if answer.status_code != 200:
        message = f"the script {uri} cannot be fetched: the server answered {answer.status_code}"
        again = answer.status_code in (408, 429) or answer.status_code >= 500
        after = retry_after(answer.headers, context.now())
        told = failed("not_found", message, code=f"HTTP_{answer.status_code}", retryable=again, retry_after=after)
        raise UnreadableError(told)
    text: str = answer.text
    return text


def retry_after(headers: Mapping[str, str], now: int) -> float | None:
    """Give how many seconds the server wants to be left alone: it tells a number, or a time by its own clock."""
    given = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", given):
        return float(given)
    try:
        until = parsedate_to_datetime(given).timestamp()
        sent = parsedate_to_datetime(headers["date"]).timestamp() if "date" in headers else now / 1000
        return max(0.0, until - sent)
    except (TypeError, ValueError, OverflowError):
        return None


def _words(given: Mapping[str, str | int | float | bool] | None) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in (given or {}).items()
    }


async def run_process(
    argv: Sequence[str],
    env: Mapping[str, str | int | float | bool] | None,
    cwd: str | None,
    context: ToolContext,
    stdin: bytes = b"",
) -> Outcome:
    """Run a program and make its end an outcome; it runs where relative paths of the playbook start."""
    folder = str(Path(context.folder, cwd or ""))
    try:
        ended = await context.children.command(argv, env=_words(env), cwd=folder, stdin=stdin)
    except OSError as error:
        if not Path(folder).is_dir():
            return failed("not_found", f"the folder {folder} cannot be entered: {error.strerror}", code="CWD")
        return failed("not_found", f"`{argv[0]}` cannot be started: {error.strerror}", code="COMMAND")
    stdout, stderr = ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")
    for line in stderr.splitlines():
        context.log(line, "warning")
    if ended.cut:
        context.log("The program wrote more than is kept; the rest is cut off.", "warning")
    result = {"returncode": ended.returncode, "stdout": stdout, "stderr": stderr}
    if ended.returncode == 0:
        return ok(result)
    why = f"exit code {ended.returncode}" if ended.returncode > 0 else f"signal {-ended.returncode}"
    last = (stderr.strip() or stdout.strip()).rpartition("\n")[2][:200]
    return failed(
        "unknown",
        f"the command ended with {why}" + (f": {last}" if last else ""),
        code=f"EXIT_{ended.returncode}",
        result=result,
    )
