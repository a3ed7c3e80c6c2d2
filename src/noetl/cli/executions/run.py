"""`noetl run`: check a playbook, run it in this process, print its result.

Exit codes: 0 completed, 1 failed, 2 invalid input, 3 cancelled, 4 waiting, 5 partial. Tested in
tests/acceptance/executions/test_run*.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.completers import complete_step_of_file
from noetl.cli.arguments.options import AsJson, Payload, Quiet, SetValue, StorePath, Tolerant, WaitForSignal, parse_wait
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.store import local_settings
from noetl.settings import Settings

if TYPE_CHECKING:
    from noetl.cli.playbooks.prepare import Prepared


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Playbook file; `-` reads stdin.")],
    set: SetValue = None,
    payload: Payload = None,
    step: Annotated[
        str | None,
        typer.Option("--step", metavar="NAME", help="Run only this step.", autocompletion=complete_step_of_file),
    ] = None,
    quiet: Quiet = False,
    json: AsJson = False,
    store: StorePath = None,
    wait: WaitForSignal = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Run nothing; print the route and the inputs that are known.")
    ] = False,
    tolerant: Tolerant = False,
) -> None:
    """Check a playbook, run it in this process and print its result."""

    async def job() -> int:
        from noetl.cli.arguments.payload import read_payload
        from noetl.cli.playbooks.prepare import Preparer

        def read(prepared: Prepared) -> dict[str, Any]:
            schema = prepared.tree.executor.setting("workload_schema")
            properties = schema.get("properties") if isinstance(schema, Mapping) else None
            declared = dict.fromkeys(properties if isinstance(properties, Mapping) else ())
            declared |= {key: value.data for key, value in prepared.tree.workload.items()}
            return read_payload(set or [], payload, declared)

        if dry_run:
            from noetl.cli.driver.dry_run import print_route

            prepared = Preparer(Path.cwd(), tolerant=tolerant).prepare(file, step)
            print_route(prepared, read(prepared), as_json=json)
            return 0
        place = (local_settings(store), parse_wait(wait))
        return await _run(file, step, read, *place, as_json=json, quiet=quiet, tolerant=tolerant)

    raise typer.Exit(call(job, fast=True))


async def _run(
    file: str,
    step: str | None,
    read: Callable[[Prepared], Mapping[str, Any]],
    settings: Settings,
    wait_s: float,
    *,
    as_json: bool,
    quiet: bool,
    tolerant: bool,
) -> int:
    from noetl.cli.playbooks.prepare import Preparer
    from noetl.wiring.embedded import child_processes

    async with child_processes(settings) as children:

        def warm_up(text: bytes) -> None:
            if b"python" in text:
                children.warm_up()

        preparer = Preparer(Path.cwd(), warm_up, tolerant)
        prepared = preparer.prepare(file, step)
        from noetl.cli.driver.start import start_and_drive

        payload = read(prepared)
        return await start_and_drive(
            settings, preparer, prepared, payload, wait_s, children, as_json=as_json, quiet=quiet
        )
