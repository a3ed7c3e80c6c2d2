"""`noetl config`: show the settings with their origin, and check them.

Tested in tests/acceptance/admin/test_configuration_cli.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson
from noetl.cli.output.format import to_json
from noetl.cli.runtime.runner import call, warn_of_unknown_variables
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidSetting
from noetl.settings import DB_URL, FILE, IN_FILES, server_settings, settings

_PASSWORDS: Final = re.compile(r"(?<=:)[^:@/\s]+(?=@)|(?<=[?&]password=)[^&\s]+")  # in the URL of a database
_NAME_WIDTH: Final = 44
_VALUE_WIDTH: Final = 32

command = command_group("Show the settings of this process with their origin, and check them.")


class _Row(NamedTuple):
    key: str  # in the configuration file
    variable: str
    value: str
    origin: str
    is_default: bool


@command.command("show")
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Add where each value comes from.")] = False,
    changed: Annotated[bool, typer.Option("--changed", help="Leave out defaults.")] = False,
    json: AsJson = False,
) -> None:
    """Show every setting with its value. Secrets are not printed.

    The names are those of the configuration file; with `--json` also those of the environment. Options of a command, such as
    `--port`, override what is shown.
    """

    async def job() -> None:
        for row in _rows():
            if changed and row.is_default:
                continue
            if json:
                place = {"origin": row.origin, "default": row.is_default}
                echo(to_json({"key": row.key, "variable": row.variable, "value": row.value, **place}))
                continue
            end = f"  {row.value:<{_VALUE_WIDTH}}  {row.origin}" if origin else f"  {row.value}"
            echo(f"{row.key:<{_NAME_WIDTH}}{end}".rstrip())

    call(job)


@command.command("check")
def check() -> None:
    """Report everything that is wrong with the settings; exit with 2 if anything is.

    `noetl serve`, `up` and `worker` do so at their start.
    """
    from noetl.cli.runtime.environment import setting_problems

    warn_of_unknown_variables()
    found = setting_problems((_check_limits, _check_provider))
    for line in found:
        echo(line)
    if found:
        raise typer.Exit(InvalidSetting.exit_code)
    echo("the settings are valid", err=True)


def _check_limits(given: Mapping[str, str]) -> None:
    """Check limits as a server's start does. Raises InvalidSetting."""
    from noetl.wiring.embedded import check_kind_limits

    check_kind_limits(settings(given, Path.cwd()))


def _check_provider(given: Mapping[str, str]) -> None:
    """Check the identity provider as a server's start does. Raises InvalidSetting."""
    from noetl.server.auth.people.oidc import checked_roles

    oidc = server_settings(given).oidc
    if oidc is not None:
        checked_roles(oidc)


def _rows() -> Iterator[_Row]:
    from noetl.configuration import file_entries, keys, knobs
    from noetl.environ import variables
    from noetl.settings import VARIABLES, with_files

    given = variables()
    own = with_files(given)
    entries = file_entries(own, Path.cwd())
    names = {name: key for name, key in keys().items() if name.removesuffix(FILE) not in IN_FILES or name in IN_FILES}
    defaults = {name: VARIABLES[name][0] for name in names if name in VARIABLES}
    defaults |= {name: str(knob.field.default or "") for name, knob in knobs().items()}
    for name, key in sorted(names.items(), key=lambda pair: pair[1]):
        entry = entries.get(name) or entries.get(name + FILE)
        if own.get(name, "").strip():
            value, origin = own[name].strip(), _variable_origin(name, given)
        elif entry is not None and entry.text:
            value, origin = entry.text, entry.place
        else:
            yield _Row(key, name, defaults[name], "default", True)
            continue
        yield _Row(key, name, _shown(name, value), origin, False)


def _variable_origin(name: str, given: Mapping[str, str]) -> str:
    file = given.get(name + FILE, "").strip()
    return f"{name}{FILE}={file}" if file and not given.get(name, "").strip() else name


def _shown(name: str, value: str) -> str:
    if name == DB_URL:
        return _PASSWORDS.sub("***", value)
    return "(secret)" if name in IN_FILES else value
