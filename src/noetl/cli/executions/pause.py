"""`noetl pause`: lets an execution schedule nothing new; what runs comes to its end.

Tested in tests/acceptance/test_run_signal.py.
"""

from __future__ import annotations

import typer

from noetl.cli.common.completers import Id
from noetl.cli.common.store import AsJson, Place, call


def command(id: Id, json: AsJson = False, store: Place = None) -> None:
    """Let an execution schedule nothing new."""

    async def job() -> int:
        from noetl.cli.driver.drive import new_id
        from noetl.cli.driver.send import send
        from noetl.model.messages import Pause

        return await send(store, id, Pause(new_id()), "pause sent to", moves=False, as_json=json)

    raise typer.Exit(call(job))
