"""Variables of a command: the process environment over the configuration file.

A secret may be in a file that `NAME_FILE` names. Loads the language only if it is needed. Tested in tests/acceptance/admin/test_configuration_cli.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noetl.environ import variables
from noetl.model.errors import InvalidInput
from noetl.settings import (
    CONFIG,
    CREDENTIAL,
    FILE,
    IN_FILES,
    PREFIX,
    SECTIONS,
    VARIABLES,
    config_file,
    redact_keys,
    with_files,
)

if TYPE_CHECKING:
    from noetl.configuration import Check
    from noetl.masking.readers import ReaderMask


def environment() -> Mapping[str, str]:
    """Return the variables of this process. Raises InvalidInput for a bad file."""
    folder = Path.cwd()
    own = with_files(variables())
    if not own.get(CONFIG, "").strip() and not config_file(own, folder).exists():
        return own
    from noetl.configuration import configured

    found = configured(own, folder)
    overridden = {name + FILE for name in IN_FILES if own.get(name, "").strip()}
    return with_files({name: value for name, value in found.items() if name not in overridden})


def setting_problems(more: Iterable[Check] = ()) -> list[str]:
    """Return what is wrong with the settings of this process, one line each."""
    from noetl.configuration import problems

    try:
        return problems(with_files(variables()), Path.cwd(), more)
    except InvalidInput as error:  # a file that `NAME_FILE` names
        return [str(error)]


def unknown_variables() -> Iterator[tuple[str, str]]:
    """Yield variables that look like settings and are none, each with a hint."""
    given = [name for name in variables() if name.startswith(PREFIX) and not name.startswith(CREDENTIAL)]
    unknown = [name for name in given if name not in VARIABLES]
    if not unknown:
        return
    from noetl.configuration import knobs
    from noetl.dsl.diagnostic import did_you_mean

    known = (*VARIABLES, *knobs())
    for name in sorted(unknown):
        if name not in known:
            yield name, did_you_mean(name, known)


@cache
def reader_mask() -> ReaderMask:
    """Return the mask over everything that this command prints or logs."""
    from noetl.masking.readers import ReaderMask

    return ReaderMask(redact_keys(environment()))


def layer_of(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the configured defaults of executions. Raises InvalidInput."""
    if not any(name.startswith(SECTIONS) for name in variables):
        return {}
    from noetl.configuration import layer

    return layer(variables)


def actor() -> str:
    """Return the name of a command's user for the audit trail."""
    name = user_name()
    return f"cli:{name}" if name else "cli"


def user_name() -> str:
    """Return the name of the operating system's user; empty if it has none."""
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):  # a user ID without a name
        return ""
