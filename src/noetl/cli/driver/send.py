"""Send a message to an execution, and drive it if no process does.

Shared by `signal`, `cancel`, `pause` and `unpause`. Tested in tests/acceptance/executions/test_run_signal.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl.cli.driver.start import take_over
from noetl.cli.output.format import to_json
from noetl.cli.runtime.driver_lock import lock_holder, root_of
from noetl.cli.runtime.store import existing, load_plan, load_state, local_settings, resolve_id, with_store
from noetl.cli.runtime.target import Server, connect, server_of
from noetl.cli.runtime.terminal import echo
from noetl.engine.plan.signals import unknown_signal
from noetl.engine.routing.saga import refused
from noetl.model.errors import Conflict, InvalidInput
from noetl.model.messages import Cancel, Pause, Signal, Unpause
from noetl.server.operations.forks import submit_with_retry
from noetl.wiring.embedded import embedded

if TYPE_CHECKING:
    from noetl import Client
    from noetl.engine.state.execution import Execution
    from noetl.model.messages import AnyMessage
    from noetl.wire.answers import Told
    from noetl.wiring.embedded import Store


async def send(
    store: str | None,
    given: str,
    message: AnyMessage,
    notice: str,
    *,
    moves: bool = True,
    wait_s: float = 0.0,
    as_json: bool,
) -> int:
    """Send a message; drive a local execution that it moves and nothing drives."""
    server = server_of(store)
    if server is not None:
        return await _send_remote(server, given, message, notice, as_json)
    settings = existing(local_settings(store))
    execution_id, root, is_local = await _find(store, given, message)
    if moves and is_local and lock_holder(settings, root) is None:
        return await take_over(settings, execution_id, root, message, wait_s, as_json=as_json)
    async with embedded(settings) as app:
        await submit_with_retry(app.control, execution_id, message)
    echo(f"{notice} execution {execution_id}", err=True)
    return 0


async def _send_remote(server: Server, given: str, message: AnyMessage, notice: str, as_json: bool) -> int:
    from noetl.client.history import RemoteHistory

    async with connect(server) as client:
        execution_id = await resolve_id(RemoteHistory(client), given)
        answer = await _submit(client, execution_id, message)
    if as_json:
        echo(to_json(answer))
    for warning in answer.warnings:
        _warn(warning)
    echo(f"{notice} execution {execution_id}", err=True)
    return 0


def _warn(text: str) -> None:
    echo(f"noetl: warning: {text}", err=True)


async def _submit(client: Client, execution_id: str, message: AnyMessage) -> Told:
    if isinstance(message, Signal):
        return await client.signal(execution_id, message.name, message.data, idempotency_key=message.message_id)
    if isinstance(message, Cancel):
        options = {"compensate": message.compensate, "abandon": message.abandon}
        return await client.cancel(execution_id, message.reason, message.run_id, **options)
    if isinstance(message, Pause):
        return await client.pause(execution_id)
    assert isinstance(message, Unpause)
    return await client.resume(execution_id)


async def _find(store: str | None, given: str, message: AnyMessage) -> tuple[str, str, bool]:
    async def job(opened: Store) -> Execution:
        state, _ = await load_state(opened, given)
        if isinstance(message, Signal):
            warning = unknown_signal((await load_plan(opened, state)).playbook, message.name)
            if warning is not None:
                _warn(warning)
        if isinstance(message, Cancel) and message.run_id is None and not message.abandon and state.phase == "closing":
            why = refused(await load_plan(opened, state), state)
            if why is not None:
                raise Conflict(f"{why}; stop the rollback with `noetl cancel {state.execution_id} --abandon`.")
        return state

    state = await with_store(store, job, to_read=True)
    if state.phase == "ended" and not state.replays:
        raise InvalidInput(f"Execution {state.execution_id} has ended ({state.status}) and takes no more messages.")
    return state.execution_id, root_of(state), state.pool.startswith("local:")
