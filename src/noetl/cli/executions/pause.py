"""`noetl pause`: pause an execution; running steps finish.

Tested in tests/acceptance/executions/test_run_signal.py.
"""

from __future__ import annotations

import typer

from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.runtime.runner import call


def command(id: ExecutionId, json: AsJson = False, store: Place = None) -> None:
    """Pause an execution: running steps finish, no new ones start."""

    async def job() -> int:
        from noetl.cli.driver.drive import new_id
        from noetl.cli.driver.send import send
        from noetl.model.messages import Pause

        return await send(store, id, Pause(new_id()), "sent pause to", moves=False, as_json=json)

    raise typer.Exit(call(job))
