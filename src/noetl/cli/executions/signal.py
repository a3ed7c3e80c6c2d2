"""`noetl signal`: sends a signal; an execution that nobody drives is driven until it ends or waits again.

Exit code as for `noetl run`; 0 where another process drives it. Tested in tests/acceptance/test_run_signal.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.common.completers import Id
from noetl.cli.common.store import AsJson, Place, call


def command(
    id: Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The signal.")],
    data: Annotated[str | None, typer.Argument(metavar="[JSON]", help="What it brings: JSON, or else text.")] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Send a signal to an execution."""

    async def job() -> int:
        from noetl.cli.driver.drive import new_id
        from noetl.cli.driver.send import send
        from noetl.cli.playbooks.prepare import data_of
        from noetl.model.messages import Signal

        message = Signal(new_id(), name, None if data is None else data_of(data))
        return await send(store, id, message, f"signal {name} sent to", as_json=json)

    raise typer.Exit(call(job))
