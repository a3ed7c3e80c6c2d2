"""`noetl cancel`: ends an execution, or one step-run of it, and its children with it.

Exit code 3 where this process sees it end; 0 where another process drives it and was told. Tested in
tests/acceptance/test_run_signal.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.common.completers import Id
from noetl.cli.common.store import AsJson, Place, call


def command(
    id: Id,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="STEP[#N]",
            help="Only this step-run, or all runs of a step; they fail with kind `cancelled`.",
        ),
    ] = None,
    compensate: Annotated[
        bool, typer.Option("--compensate", help="Undo what was done first, with the steps that `compensate` names.")
    ] = False,
    abandon: Annotated[
        bool,
        typer.Option(
            "--abandon", help="Give up what is being undone; without it an execution that undoes something goes on."
        ),
    ] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the log.")] = "",
    json: AsJson = False,
    store: Place = None,
) -> None:
    """End an execution."""

    async def job() -> int:
        from noetl.cli.driver.drive import new_id
        from noetl.cli.driver.send import send
        from noetl.model.errors import InvalidInput
        from noetl.model.messages import Cancel

        if run is not None and compensate:
            raise InvalidInput("--compensate is for a whole execution: leave --run or --compensate away")
        if abandon and (run is not None or compensate):
            raise InvalidInput(
                "--abandon is for a whole execution that undoes something: leave --run and --compensate away"
            )
        said = reason or "it was cancelled from the command line"
        message = Cancel(new_id(), said, run, by="cli", compensate=compensate, abandon=abandon)
        return await send(store, id, message, "cancellation sent to", as_json=json)

    raise typer.Exit(call(job))
