"""`noetl doctor`: check a set-up, and say what to fix.

Tested in tests/acceptance/servers/test_doctor_cli.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import typer

from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import to_json
from noetl.cli.runtime.terminal import echo, style
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.cli.doctor.finding import Finding

_MARKS = {"ok": "ok     ", "warning": "warning", "problem": "PROBLEM"}
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def command(json: AsJson = False, server: Place = None) -> None:
    """Check configuration, store, keys, clocks, disk and server, and say what to fix.

    Run it on each machine. It checks the store of this machine if it has one or no server is configured, and the server that
    commands use. Exits with 1 if there is a problem; warnings do not count. It repairs nothing.
    """
    import asyncio

    async def job() -> list[Finding]:
        found = []
        async for one in _findings(server):
            found.append(one)
            if not json:
                _show(one)
        return found

    found = asyncio.run(job())
    problems = sum(one.status == "problem" for one in found)
    warnings = sum(one.status == "warning" for one in found)
    if json:
        echo(to_json({"problems": problems, "warnings": warnings, "findings": [one._asdict() for one in found]}))
    else:
        echo(f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}", err=True)
    if problems:
        raise typer.Exit(1)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _show(one: Finding) -> None:
    echo(style(_MARKS[one.status], fg=_COLOURS[one.status]), f"  {one.check:<13}  {one.found}")
    if one.fix:
        echo(f"{'':<24}{one.fix}")


async def _findings(place: str | None) -> AsyncIterator[Finding]:
    from noetl.cli.doctor import local_store, machine, remote_server
    from noetl.cli.doctor.finding import problem
    from noetl.cli.runtime.store import local_settings
    from noetl.cli.runtime.target import is_server, server_of

    for one in machine.configuration():
        yield one
    try:
        remote = server_of(place)
        settings = local_settings(None if is_server(place) else place)
    except InvalidInput as error:
        if not str(error).startswith("The setting"):
            yield problem("configuration", str(error), "Correct it.")
        return  # nothing can be checked with wrong settings
    for checks in (machine.installation, machine.permissions, machine.disk):
        for one in checks(settings):
            yield one
    if remote is None or settings.database or settings.store.is_file():
        async for one in local_store.store(settings):
            yield one
    if remote is not None:
        async for one in remote_server.server(remote):
            yield one
