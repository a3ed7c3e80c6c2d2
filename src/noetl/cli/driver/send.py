"""Gives an execution a message from the command line: to its driver through the store, or by becoming its driver.

`signal`, `cancel`, `pause` and `unpause` share it. Tested in tests/acceptance/test_run_signal.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from noetl.cli.common.store import as_json as one_line
from noetl.cli.common.store import existing, holder_of, local_settings, plan_of, root_of, state_of, the_id
from noetl.cli.common.target import Server, connected, server_of, told
from noetl.cli.driver.drive import tell
from noetl.cli.driver.start import take_over
from noetl.engine.saga import refused
from noetl.model.errors import Conflict, InvalidInput
from noetl.model.messages import Cancel
from noetl.wiring import embedded, open_store

if TYPE_CHECKING:
    from noetl.model.messages import AnyMessage
    from noetl.settings import Settings


async def send(
    store: str | None,
    given: str,
    message: AnyMessage,
    said: str,
    *,
    moves: bool = True,
    wait_s: float = 0.0,
    as_json: bool,
) -> int:
    """Give a message; where it can move an execution that nobody drives, drive it until it ends or waits again."""
    server = server_of(store)
    if server is not None:
        return await _send_there(server, given, message, said, as_json)
    settings = existing(local_settings(store))
    execution_id, root, is_local = await _find(settings, given, message)
    if moves and is_local and holder_of(settings, root) is None:
        return await take_over(settings, execution_id, root, message, wait_s, as_json=as_json)
    async with embedded(settings) as app:
        await tell(app, execution_id, message)
    typer.echo(f"{said} execution {execution_id}", err=True)
    return 0


async def _send_there(server: Server, given: str, message: AnyMessage, said: str, as_json: bool) -> int:
    from noetl.client.history import RemoteHistory

    async with connected(server) as client:
        execution_id = await the_id(RemoteHistory(client), given)
        answer = await told(client, execution_id, message)
    if as_json:
        typer.echo(one_line(answer))
    typer.echo(f"{said} execution {execution_id}", err=True)
    return 0


async def _find(settings: Settings, given: str, message: AnyMessage) -> tuple[str, str, bool]:
    store = open_store(settings)
    try:
        state, _ = await state_of(store, given)
        if isinstance(message, Cancel) and message.run_id is None and not message.abandon and state.phase == "closing":
            why = refused(await plan_of(store, state), state)
            if why is not None:
                raise Conflict(f"{why}; `noetl cancel {state.execution_id} --abandon` gives up what is left.")
    finally:
        await store.close()
    if state.phase == "ended" and not state.replays:
        raise InvalidInput(
            f"execution {state.execution_id} has ended: {state.status}. Nothing can be sent to it any more."
        )
    return state.execution_id, root_of(state), state.pool.startswith("local:")
