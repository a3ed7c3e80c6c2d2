"""Open a store. Tested in tests/acceptance/executions/test_run_commands.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from noetl.cli.runtime.environment import environment, layer_of
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.target import connect, is_server, server_of
from noetl.model.errors import InvalidInput, UnknownExecution
from noetl.ports import History, Selection
from noetl.settings import Settings, settings

if TYPE_CHECKING:
    from noetl.engine.plan.plan import Plan
    from noetl.engine.state.execution import Execution
    from noetl.model.events import Event
    from noetl.wiring.embedded import Store

_POLL_S: Final = 0.1
T = TypeVar("T")


def local_settings(store: str | None) -> Settings:
    """Return the settings of this process. Raises InvalidInput if `store` is a server."""
    if is_server(store):
        raise InvalidInput(f"This command needs a local store, but {store} is a server. Use --store PATH.")
    from msgspec.structs import replace

    variables = environment()
    return replace(settings(variables, Path.cwd(), store), layer=layer_of(variables))


def existing(found: Settings) -> Settings:
    """Return the settings unchanged. Raises InvalidInput if the store does not exist."""
    if not found.database and not found.store.is_file():
        raise InvalidInput(
            f"No store at {found.store}. Create one with `noetl run FILE`, or use another with --store PATH or NOETL_HOME."
        )
    return found


def read_history(place: str | None, job: Callable[[History], Awaitable[T]]) -> T:
    """Run a read-only job on an existing store or on a server."""
    return call(lambda: with_history(place, job))


async def with_history(place: str | None, job: Callable[[History], Awaitable[T]]) -> T:
    """Run a job on the history of an existing store or of a server."""
    server = server_of(place)
    if server is None:
        return await with_store(place, job, to_read=True)
    from noetl.client.history import RemoteHistory

    async with connect(server) as client:
        return await job(RemoteHistory(client))


async def with_store(store: str | None, job: Callable[[Store], Awaitable[T]], *, to_read: bool = False) -> T:
    """Run a job on an existing local store; `to_read`: it writes nothing."""
    from noetl.wiring.embedded import open_store

    opened = open_store(existing(local_settings(store)), to_read=to_read)
    try:
        return await job(opened)
    finally:
        await opened.close()


async def resolve_id(store: History, given: str) -> str:
    """Return an ID; `last` is the newest that is no child. Raises UnknownExecution."""
    if given == "last":
        rows = await store.executions(Selection(parent="", limit=1))
        if not rows:
            raise UnknownExecution("The store has no executions yet. Start one with `noetl run FILE`.")
        return str(rows[0]["execution_id"])
    if await store.execution(given) is None:
        raise UnknownExecution(f"No execution {given} in this store. List executions with `noetl runs`.")
    return given


async def load_state(store: History, given: str) -> tuple[Execution, list[Event]]:
    """Fold the log of an execution; return the state and the events."""
    from noetl.engine.state.evolve import fold

    execution_id = await resolve_id(store, given)
    events = await store.read(execution_id)
    return fold(execution_id, events), events


async def load_plan(store: History, state: Execution) -> Plan:
    """Return the plan that an execution is pinned to. Raises InvalidInput."""
    from noetl.dsl.tree.pin import unpinned
    from noetl.engine.plan.plan import plan

    data = await store.canonical(state.playbook)
    if data is None:
        raise InvalidInput(f"No playbook with the content hash {state.playbook} in this store.")
    return plan(unpinned(data), state.playbook, layer_of(environment()))


async def read_events(log: History, execution_id: str, follow: bool) -> AsyncIterator[Event]:
    """Yield the events of an execution; with `follow`, until it has ended."""
    from asyncio import sleep

    from noetl.engine.queries.view import ENDED

    if follow and hasattr(log, "follow"):
        async for event in log.follow(execution_id):
            yield event
        return
    after = 0
    while True:
        row = await log.execution(execution_id)
        for event in await log.read(execution_id, after):
            after = event.seq
            yield event
        if not follow or (row is not None and row.get("status") in ENDED and after >= row["last_seq"]):
            return
        await sleep(_POLL_S)
