"""`noetl cancel`: cancel an execution with its children, or one step run.

Exit code 3 if this process sees it end; 0 if another process drives it and was notified. Tested in
tests/acceptance/executions/test_run_signal.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.runtime.runner import call


def command(
    id: ExecutionId,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="STEP[#N]",
            help="Cancel only this step run, or all runs of a step; they fail with kind `cancelled`.",
        ),
    ] = None,
    compensate: Annotated[
        bool, typer.Option("--compensate", help="Roll back completed steps with their `compensate` steps first.")
    ] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Stop a rollback that is running; otherwise it continues.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, kept in the log.")] = "",
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Cancel an execution or one of its step runs."""

    async def job() -> int:
        from noetl.cli.driver.drive import new_id
        from noetl.cli.driver.send import send
        from noetl.model.errors import InvalidInput
        from noetl.model.messages import Cancel

        if run is not None and compensate:
            raise InvalidInput("--compensate applies to a whole execution. Remove --run or --compensate.")
        if abandon and (run is not None or compensate):
            raise InvalidInput("--abandon applies to a whole execution. Remove --run and --compensate.")
        why = reason or "cancelled from the command line"
        message = Cancel(new_id(), why, run, by="cli", compensate=compensate, abandon=abandon)
        return await send(store, id, message, "sent cancellation to", as_json=json)

    raise typer.Exit(call(job))
