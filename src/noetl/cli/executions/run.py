"""`noetl run`: checks a playbook, runs it in this process on a durable log, shows how it goes, and prints its result.

Exit code by how it ended: 0 completed, 1 failed, 2 invalid input, 3 cancelled, 4 waiting, 5 partial. Tested in
tests/acceptance/test_run*.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from noetl.cli.common.completers import steps_of_file
from noetl.cli.common.store import AsJson, StorePath, call, local_settings
from noetl.model.errors import InvalidInput
from noetl.settings import Settings


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The playbook, or - for stdin.")],
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A value of the workload: JSON or text; dots go into maps."),
    ] = None,
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="JSON|@FILE", help="Values of the workload as a JSON object.")
    ] = None,
    step: Annotated[
        str | None, typer.Option("--step", metavar="NAME", help="Run this step alone.", autocompletion=steps_of_file)
    ] = None,
    json: AsJson = False,
    store: StorePath = None,
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            help="Stay where only a signal can move the execution: --wait=SECONDS, or --wait for ever.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the route and the inputs as far as they are known.")
    ] = False,
) -> None:
    """Check a playbook, run it here, and print its result."""

    async def job() -> int:
        from noetl.cli.playbooks.prepare import Preparing, payload_of

        data = payload_of(given or [], payload)
        if dry_run:
            from noetl.cli.driver.dry_run import show_route

            show_route(Preparing(Path.cwd()).read(file, step), data, as_json=json)
            return 0
        return await checked_and_run(file, step, data, local_settings(store), patience(wait), as_json=json)

    raise typer.Exit(call(job, fast=True))


async def checked_and_run(
    file: str, step: str | None, data: Mapping[str, Any], settings: Settings, wait_s: float, *, as_json: bool
) -> int:
    """Check a playbook and run it; the processes for Python code start while it is checked. Gives the exit code."""
    from noetl.cli.playbooks.prepare import Preparing
    from noetl.wiring import child_processes

    async with child_processes(settings) as children:

        def ahead(text: bytes) -> None:
            if b"python" in text:
                children.warm_up()

        preparing = Preparing(Path.cwd(), ahead)
        prepared = preparing.read(file, step)
        from noetl.cli.driver.start import start_and_drive

        return await start_and_drive(settings, preparing, prepared, data, wait_s, children, as_json=as_json)


def patience(wait: str | None) -> float:
    """Read `--wait[=SECONDS]`: none, so long, or for ever."""
    if wait is None:
        return 0.0
    if wait == "forever":
        return float("inf")
    try:
        seconds = float(wait)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise InvalidInput(f"`--wait={wait}`: a number of seconds is needed, or nothing for as long as it takes.")
    return seconds
