"""`noetl unpause`: continue a paused execution, and drive it if no process does.

Tested in tests/acceptance/executions/test_run_signal.py.
"""

from __future__ import annotations

import typer

from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.runtime.runner import call


def command(id: ExecutionId, json: AsJson = False, store: Place = None) -> None:
    """Continue a paused execution."""

    async def job() -> int:
        from noetl.cli.driver.drive import new_id
        from noetl.cli.driver.send import send
        from noetl.model.messages import Unpause

        return await send(store, id, Unpause(new_id()), "sent unpause to", as_json=json)

    raise typer.Exit(call(job))
