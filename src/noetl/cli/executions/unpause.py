"""`noetl unpause`: lets a paused execution go on, and drives it where nobody does.

Tested in tests/acceptance/test_run_signal.py.
"""

from __future__ import annotations

import typer

from noetl.cli.common.completers import Id
from noetl.cli.common.store import AsJson, Place, call


def command(id: Id, json: AsJson = False, store: Place = None) -> None:
    """Let a paused execution go on."""

    async def job() -> int:
        from noetl.cli.driver.drive import new_id
        from noetl.cli.driver.send import send
        from noetl.model.messages import Resume

        return await send(store, id, Resume(new_id()), "it goes on:", as_json=json)

    raise typer.Exit(call(job))
