"""Inputs and helpers that kinds share. Tested in tests/tools/test_registry.py."""

import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from noetl.dsl.grammar.kinds import Need
from noetl.model.outcome import Outcome, failed, ok
from noetl.ports import ToolContext
from noetl.ports.web import CONNECT_S, WebError, WebRequest
from noetl.ports.work import Masked
from noetl.tools.contract import Seconds, Sql, ToolInput, about
from noetl.tools.sql.files import read_file

_MOST_SCRIPT = 8 * 1024 * 1024  # bytes of a script from a web server
WriteMode = Annotated[
    Literal["insert", "append", "upsert", "overwrite"],
    msgspec.Meta(extra={"synonyms": (("replace", "overwrite"),)}),
]
Environment = Annotated[
    dict[str, str | int | float | bool] | None,
    about("Environment variables, added to those of the worker.", {"LOG_LEVEL": "debug"}),
]


class ScriptSource(ToolInput, frozen=True, kw_only=True):
    """How to fetch the text of a script."""

    type: Annotated[
        Literal["inline", "file", "http", "s3", "gcs"],
        about("Where the text is stored. This version has `inline`, `file` and `http`.", "http"),
    ]
    auth: Annotated[str | None, about("Credential to read it.", "gcs_reader", aliases=("credential",))] = None
    content: Annotated[
        str | None, about("With `inline`: the text itself.", "SELECT 1", aliases=("code",), rendered="")
    ] = None
    endpoint: Annotated[str | None, about("With `s3`: URL of another object store.")] = None
    region: Annotated[str | None, about("With `s3`: region of the bucket.", "eu-central-1")] = None
    method: Annotated[Literal["GET", "POST"], about("With `http`: request method.")] = "GET"
    headers: Annotated[dict[str, str] | None, about("With `http`: request headers.")] = None
    timeout: Annotated[Seconds | None, about("Time-out for fetching it, in seconds.", 10)] = None


class Script(ToolInput, frozen=True, kw_only=True):
    """Text stored outside the playbook and read when the task runs."""

    uri: Annotated[str | None, about("File path or URL of the script.", "./load.sql")] = None
    content: Annotated[
        str | None, about("The text itself, with a source of type `inline`.", aliases=("code",), rendered="")
    ] = None
    source: Annotated[
        ScriptSource | None, about("How to fetch it; by default derived from `uri`.", {"type": "file"})
    ] = None


class SqlInput(ToolInput, frozen=True, kw_only=True):
    """SQL to run, or rows to write to a table."""

    command: Annotated[Sql | None, about("SQL: one or more statements.", "DELETE FROM cache")] = None
    query: Annotated[Sql | None, about("SQL that reads; same as `command`.", "SELECT 1 AS one")] = None
    commands: Annotated[
        Sql | list[Sql] | None, about("SQL as a list of statements, or as one string.", ["SELECT 1"])
    ] = None
    script: Annotated[Script | None, about("SQL stored outside the playbook.", {"uri": "./load.sql"})] = None
    params: Annotated[
        dict[str, Any] | list[Any] | None, about("Bound parameters: a map by name, or a list by position.", {"id": 7})
    ] = None
    table: Annotated[str | None, about("Table to write rows to, instead of SQL.", "public.orders")] = None
    mode: Annotated[WriteMode | None, about("How to write rows; `insert` by default.", "upsert")] = None
    key: Annotated[
        str | list[str] | None, about("With `upsert`: key columns; by default the task's idempotency key.", "order_id")
    ] = None
    values: Annotated[
        dict[str, Any] | list[dict[str, Any]] | None,
        about("Row or list of rows; by default the task's `input` is the row.", {"order_id": 7, "state": "paid"}),
    ] = None


Transactional = Annotated[
    bool,
    about("Commit all writes together with a completion marker, so that a repeated run takes effect once.", True),
]
MarkerTable = Annotated[
    str | None,
    about("With `transactional`: table of completion markers; `noetl_marker` by default.", "ops.marker"),
]
SQL_FORMS = ("command", "query", "commands", "script", "table")
TABLE_NEEDS = (Need("mode", ("table",)), Need("key", ("table",)), Need("values", ("table",)))
SQL_RESULT = {
    "rows": "Rows of the last statement, each a map from column to value.",
    "row_count": "Number of rows returned or affected.",
    "columns": "Column names, in order.",
    "status": "Status reported by the database, such as `INSERT 0 3`.",
    "command_<i>": "The same fields for each statement, numbered from 0.",
}
PROCESS_RESULT = {
    "returncode": "Exit code.",
    "stdout": "Standard output, as text.",
    "stderr": "Standard error, as text.",
}


class UnreadableError(Exception):
    """A script could not be fetched; `outcome` has the reason."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.error.message if outcome.error else "")
        self.outcome = outcome


async def script_text(script: Script, context: ToolContext) -> str:
    """Fetch the text of a script. Raises UnreadableError with the task's outcome."""
    uri = script.uri or ""
    inline = script.content
    if inline is None and script.source is not None:
        inline = script.source.content
    if inline is not None and (not uri or (script.source is not None and script.source.type == "inline")):
        return inline
    known = next((name for name, start in _ADDRESSES.items() if uri.startswith(start)), "file")
    kind = script.source.type if script.source else known
    if kind == "file":
        path = Path(context.folder, uri.removeprefix("file://"))
        try:
            async with context.thread() as thread:
                return (await read_file(path, thread)).decode().replace("\r\n", "\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise UnreadableError(failed("not_found", f"cannot read the script {path}: {reason}")) from None
    if kind == "http":
        return await _fetch(uri, script.source, context)
    raise UnreadableError(failed("client_error", f"scripts from a source of type `{kind}` are not supported."))


_ADDRESSES = {"http": ("http://", "https://"), "s3": ("s3://",), "gcs": ("gs://",)}


async def _fetch(uri: str, source: ScriptSource | None, context: ToolContext) -> str:
    source = source or ScriptSource(type="http")
    request = WebRequest(
        url=uri,
        method=source.method,
        headers=source.headers or {},
        connect_s=source.timeout or CONNECT_S,
        read_s=source.timeout,
    )
    try:
        async with context.web().send(request) as response:
            content = await response.read(_MOST_SCRIPT)
    except PermissionError as error:
        raise UnreadableError(failed("client_error", str(error), code="EGRESS_DENIED")) from None
    except ValueError as error:
        raise UnreadableError(failed("client_error", f"cannot fetch the script {uri}: {error}")) from None
    except WebError as error:
        raise UnreadableError(failed("connection", f"cannot fetch the script {uri}: {error}", retryable=True)) from None
    if content is None:
        message = f"the script {uri} is larger than {_MOST_SCRIPT:,} bytes"
        raise UnreadableError(failed("client_error", message, code="HTTP_TOO_LARGE"))
    if response.status != 200:
        message = f"cannot fetch the script {uri}: the server responded with {response.status}"
        again = response.status in (408, 429) or response.status >= 500
        after = retry_after(response.headers, context.now())
        code = f"HTTP_{response.status}"
        raise UnreadableError(failed("not_found", message, code=code, retryable=again, retry_after=after))
    return content.decode("utf-8", "replace")


def retry_after(headers: Mapping[str, str], now: int) -> float | None:
    """Return the seconds of a `Retry-After` header: a number, or a date."""
    given = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", given):
        return float(given)
    try:
        until = parsedate_to_datetime(given).timestamp()
        sent = parsedate_to_datetime(headers["date"]).timestamp() if "date" in headers else now / 1000
        return max(0.0, until - sent)
    except (TypeError, ValueError, OverflowError):
        return None


def excerpt(content: bytes | str, masked: Masked, *, last: bool = False) -> str:
    """Return the first lines of a text for people, or the last; empty if it is binary.

    They are masked before they are cut.
    """
    if isinstance(content, bytes):
        content = "" if b"\0" in content[:_MOST_EXCERPT] else content.decode("utf-8", "replace")
    content = _read(content, masked, last=last)
    lines = [line.rstrip() for line in content.splitlines() if line.strip()]
    text = "\n".join(lines[-_MOST_LINES:] if last else lines[:_MOST_LINES])
    return cut(
        "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text), _MOST_EXCERPT, last=last
    )


def _read(text: str, masked: Masked, *, last: bool = False) -> str:
    """Return the beginning or end of a text, masked, of which a part can be shown."""
    if len(text) <= _READ:
        return masked(text)
    return f"…{masked(text[-_READ:], 'start')}" if last else f"{masked(text[:_READ], 'end')}…"


def cut(text: str, most: int, *, last: bool = False) -> str:
    """Return the first or last characters of a text, with an ellipsis at the cut."""
    if len(text) <= most:
        return text
    return f"…{text[-most:]}" if last else f"{text[:most]}…"


_MOST_LINES = 5
_MOST_EXCERPT = 500
_MOST_LAST = 200
_READ = 16_384


def _environment(given: Mapping[str, str | int | float | bool] | None) -> dict[str, str]:
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
    """Run a program in the playbook's folder and convert its exit to an outcome."""
    folder = str(Path(context.folder, cwd or ""))
    try:
        ended = await context.children.command(argv, env=_environment(env), cwd=folder, stdin=stdin, log=context.log)
    except OSError as error:
        if not Path(folder).is_dir():
            return failed("not_found", f"cannot change to the folder {folder}: {error.strerror}", code="CWD")
        return failed("not_found", f"cannot start `{argv[0]}`: {error.strerror}", code="COMMAND")
    stdout, stderr = ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")
    if ended.cut:
        context.log("Output exceeds the limit and was truncated.", "warning")
    result = {"returncode": ended.returncode, "stdout": stdout, "stderr": stderr}
    if ended.returncode == 0:
        return ok(result)
    why = f"exit code {ended.returncode}" if ended.returncode > 0 else f"signal {-ended.returncode}"
    said = stderr.strip() or stdout.strip()
    last = cut(_read(said.rpartition("\n")[2], context.masked), _MOST_LAST)
    if ended.exceeded:
        return failed("unknown", f"the command was ended for {ended.exceeded}", code="LIMIT", result=result)
    hint = context.children.hint(f"{why} {last}")
    return failed(
        "unknown",
        f"the command failed with {why}" + (f": {last}" if last else "") + hint,
        code=f"EXIT_{ended.returncode}",
        details={"returncode": ended.returncode, "output": excerpt(said, context.masked, last=True)},
        result=result,
    )
