"""`noetl resume`: goes on with an execution whose process ended, however it ended.

Takes the driver's lock, lets the dead driver's leases run out at once, and drives on after the last recorded task. Tested in
tests/acceptance/test_run_resume.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.common.completers import Id
from noetl.cli.common.store import AsJson, StorePath, call, existing, local_settings, root_of, state_of
from noetl.model.errors import InvalidInput


def command(
    id: Id,
    json: AsJson = False,
    store: StorePath = None,
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            help="Stay where only a signal can move it: --wait=SECONDS, or --wait for ever.",
        ),
    ] = None,
) -> None:
    """Go on with an execution whose process ended."""

    async def job() -> int:
        from noetl.cli.driver.start import take_over
        from noetl.cli.executions.run import patience
        from noetl.cli.output.summary import exit_code, say_ending, say_summary
        from noetl.wiring import open_store

        settings = existing(local_settings(store))
        opened = open_store(settings)
        try:
            state, _ = await state_of(opened, id)
        finally:
            await opened.close()
        if state.phase == "ended":
            (say_summary if json else say_ending)(state)
            return exit_code(state)
        if not state.pool.startswith("local:"):
            raise InvalidInput(
                f"execution {state.execution_id} is not a local run: the workers of its pool go on with it."
            )
        return await take_over(settings, state.execution_id, root_of(state), None, patience(wait), as_json=json)

    raise typer.Exit(call(job, fast=True))
