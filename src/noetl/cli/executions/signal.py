"""`noetl signal`: send a signal, and drive the execution if no process does.

Exit codes are those of `noetl run`; 0 if another process drives the execution. Tested in
tests/acceptance/executions/test_run_signal.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.runtime.runner import call


def command(
    id: ExecutionId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the signal.")],
    data: Annotated[str | None, typer.Argument(metavar="[JSON]", help="Data of the signal, JSON or text.")] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Send a signal to an execution."""

    async def job() -> int:
        from noetl.cli.arguments.payload import parse_signal_data
        from noetl.cli.driver.drive import new_id
        from noetl.cli.driver.send import send
        from noetl.model.messages import Signal

        message = Signal(new_id(), name, None if data is None else parse_signal_data(data))
        return await send(store, id, message, f"sent signal {name} to", as_json=json)

    raise typer.Exit(call(job))
