"""Options and arguments that several commands share."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from noetl.cli.arguments.completers import complete_execution
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput

FOREVER = float("inf")
_PASSWORD = re.compile(r"\w://[^/\s:@]*:[^/\s@]+@|\bpassword=", re.IGNORECASE)  # in an address
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def warn_of_secret(what: str, instead: str) -> None:
    """Warn of a secret among the arguments of a command, which `ps` shows."""
    echo(f"noetl: warning: other users of this machine can see {what} while the command runs. {instead}", err=True)


def from_file(context: typer.Context, param: typer.CallbackParam, value: str | None) -> str | None:
    """Return the value of an option, or the text of the file that `@FILE` names.

    Warns of a secret that the command line itself holds.
    """
    if value is None or context.resilient_parsing:
        return value
    option = str(param.opts[0])
    if not value.startswith("@"):
        if option == "--token":
            warn_of_secret("the token of --token", "Set NOETL_TOKEN, or name a file: --token @FILE.")
        elif _PASSWORD.search(value):
            way = "NOETL_SERVER_URL" if value.startswith("http") else "NOETL_DB_URL"
            warn_of_secret(f"the password in {option}", f"Set {way}, or name a file: {option} @FILE.")
        return value
    from noetl.settings import read_secret

    try:
        return read_secret(value[1:], option)
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from None


ExecutionId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Execution ID, or `last` for the newest one that no other started.",
        autocompletion=complete_execution,
    ),
]
StorePath = Annotated[
    str | None,
    typer.Option(
        "--store",
        "--db",
        metavar="PATH|URL|@FILE",
        help="Store to use: a file or a `postgresql://` URL; `@FILE` reads it from a file. "
        "[env: NOETL_DB_URL, NOETL_DB_URL_FILE, NOETL_HOME] [default: .noetl/noetl.db]",
        callback=from_file,
    ),
]
Place = Annotated[
    str | None,
    typer.Option(
        "--server",
        "--store",
        "--db",
        metavar="URL|PATH|@FILE",
        help="Server (`http://…`) or store (a file or a `postgresql://` URL) to use; `@FILE` reads it from a file. "
        "[env: NOETL_SERVER_URL] [default: the context in use, else the local store]",
        callback=from_file,
    ),
]
Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL|@FILE",
        help="PostgreSQL database of the store; `@FILE` reads its URL from a file. [env: NOETL_DB_URL, NOETL_DB_URL_FILE]",
        callback=from_file,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN|@FILE",
        help="API token to send; `@FILE` reads it from a file. [env: NOETL_TOKEN, NOETL_TOKEN_FILE]",
        callback=from_file,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show progress without what tasks print.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Tolerant = Annotated[bool, typer.Option("--tolerant", help="Report unknown keys as warnings, and leave them out.")]
SetValue = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Workload value, JSON or text; dots reach into maps; repeatable."),
]
Payload = Annotated[
    str | None, typer.Option("--payload", metavar="JSON|@FILE", help="Workload values as a JSON object.")
]
WaitForSignal = Annotated[
    str | None,
    typer.Option(
        "--wait",
        metavar="[=SECONDS]",
        help="Keep running while the execution waits for a signal: `--wait=SECONDS`, or `--wait` without a limit.",
    ),
]
DecidedBy = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who decides; `by` of the answer. [default: your user name]")
]
Comment = Annotated[str, typer.Option("--comment", metavar="TEXT", help="Comment; `comment` of the answer.")]
DecisionSignal = Annotated[
    str | None,
    typer.Option("--signal", metavar="NAME", help="Signal to answer. [default: the only one that expects a decision]"),
]


def parse_wait(wait: str | None) -> float:
    """Return the seconds of `--wait`: 0 if absent, infinity without a value."""
    if wait is None:
        return 0.0
    if wait == "forever":
        return FOREVER
    try:
        seconds = float(wait)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise InvalidInput(f"`--wait={wait}` is not a number of seconds. Write --wait=30, or --wait to wait forever.")
    return seconds


def parse_duration(option: str, text: str) -> int:
    """Return the seconds of a duration such as 30d or 12h. Raises InvalidInput."""
    found = re.fullmatch(r"(\d+)([smhdw])", text.strip())
    if found is None or not int(found[1]):
        raise InvalidInput(f"`{option} {text}` is not a duration. Write 30d, 12h, 90m, 60s or 2w.")
    return int(found[1]) * _UNITS[found[2]]
