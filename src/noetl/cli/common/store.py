"""What every command on executions shares: the store, the id that is meant, the lock of a driver, and troubles in words.

Exit codes: 0 completed, 1 failed, 2 invalid input, 3 cancelled, 4 waiting, 5 partial. Tested in tests/acceptance/test_run*.py.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar

import typer

from noetl.cli.common.environment import environment, layer_of
from noetl.cli.common.target import connected, is_server, server_of
from noetl.model.errors import Conflict, InvalidInput, NoetlError, UnknownExecution
from noetl.ports import History, Selection
from noetl.settings import LOG_LEVEL, Settings, settings

if TYPE_CHECKING:
    from noetl.engine.plan import Plan
    from noetl.engine.state import Execution
    from noetl.model.events import Event
    from noetl.wiring import Store

StorePath = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PATH",
        help="The store, a file or a `postgresql://` address; without it `$NOETL_DB_URL`, else `$NOETL_HOME/noetl.db`, "
        "else `.noetl/noetl.db`.",
    ),
]
Place = Annotated[
    str | None,
    typer.Option(
        "--server",
        "--store",
        metavar="URL|PATH",
        help="Where the executions are: a server (`http://…`), a `postgresql://` address or a file. Without it "
        "`$NOETL_SERVER_URL`, else the context in use, else the store of this folder.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

EXIT_CODES = {"completed": 0, "failed": 1, "cancelled": 3, "partial": 5}  # any other status: 4
WAITING = 4
_PATIENCE_S = 2.0
_LOOK_S = 0.1
T = TypeVar("T")


def local_settings(store: str | None) -> Settings:
    """Gather the settings of this process."""
    if is_server(store):
        raise InvalidInput(f"this works on a store of this machine, and {store} is a server.")
    from msgspec.structs import replace

    found = environment()
    return replace(settings(found, Path.cwd(), store), layer=layer_of(found))


def call(job: Callable[[], Awaitable[T]], *, fast: bool = False) -> T:
    """Run a command's work; a trouble that has a name becomes one line and its exit code.

    `fast` takes the quicker event loop, which a command that only asks something would not earn back.
    """
    import asyncio

    async def done() -> T:
        return await job()

    try:
        _write_log()
        with asyncio.Runner(loop_factory=fast_loop() if fast else None) as runner:
            return runner.run(done())
    except NoetlError as error:
        complain(error)
        raise typer.Exit(error.exit_code) from None


def _write_log() -> None:
    import logging

    # Warnings of libraries are not for people who run a playbook: what a task came to is told in its outcome.
    level = environment().get(LOG_LEVEL, "ERROR").upper()
    logging.basicConfig(
        format="noetl: %(message)s", level=level if level in logging.getLevelNamesMapping() else "ERROR"
    )


def fast_loop() -> Callable[[], Any] | None:
    """Give what makes the event loop of a process that works; nothing where the system has only the usual one."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


def complain(error: NoetlError) -> None:
    typer.echo(f"noetl: {error}", err=True)


def reading(place: str | None, job: Callable[[History], Awaitable[T]]) -> T:
    """Run a command that only looks: at a store that is there, or at a server."""

    async def done() -> T:
        server = server_of(place)
        if server is None:
            return await in_store(place, job)
        from noetl.client.history import RemoteHistory

        async with connected(server) as client:
            return await job(RemoteHistory(client))

    return call(done)


async def in_store(store: str | None, job: Callable[[Store], Awaitable[T]]) -> T:
    """Do something with a store that is there."""
    from noetl.wiring import open_store

    opened = open_store(existing(local_settings(store)))
    try:
        return await job(opened)
    finally:
        await opened.close()


def existing(found: Settings) -> Settings:
    """Give the settings of a store that is there."""
    if not found.database and not found.store.is_file():
        raise InvalidInput(
            f"there is no store at {found.store}. `noetl run FILE` makes one; `--store PATH` or NOETL_HOME names another."
        )
    return found


async def the_id(store: History, given: str) -> str:
    """Give the id of an execution that the store knows."""
    if given == "last":
        rows = await store.executions(Selection(limit=1))
        if not rows:
            raise UnknownExecution("this store holds no execution yet.")
        return str(rows[0]["execution_id"])
    if await store.execution(given) is None:
        raise UnknownExecution(f"there is no execution {given} in this store; `noetl runs` lists those that there are.")
    return given


async def history(store: History, given: str) -> list[Event]:
    """Give the whole log of an execution."""
    return await store.read(await the_id(store, given))


async def state_of(store: History, given: str, upto: int | None = None) -> tuple[Execution, list[Event]]:
    """Fold the log of an execution, whole or up to an event."""
    from noetl.engine.evolve import fold

    events = [event for event in await history(store, given) if upto is None or event.seq <= upto]
    return fold(events[0].execution_id if events else given, events), events


async def plan_of(store: History, state: Execution) -> Plan:
    """Give the plan that an execution is pinned to."""
    from noetl.dsl.pin import unpinned
    from noetl.engine.plan import plan

    data = await store.canonical(state.playbook)
    if data is None:
        raise InvalidInput(f"there is no playbook with the content hash {state.playbook} in this store")
    return plan(unpinned(data), state.playbook, layer_of(environment()))


def root_of(state: Execution) -> str:
    """Give the execution whose driver does the work: itself, or the one that a child's work was started for."""
    return state.pool.removeprefix("local:") if state.pool.startswith("local:") else state.execution_id


@contextmanager
def driving(found: Settings, execution_id: str) -> Iterator[None]:
    """Hold the lock of an execution's driver; its release, also by the death of the process, lets another take over.

    The children of a driver that was killed keep the lock for as long as they live, which is less than the patience here.
    """
    path = found.locks / execution_id
    try:
        found.locks.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"the folder {found.locks} cannot be made: {error.strerror}. `--store PATH` names another place."
        ) from None
    until = monotonic() + _PATIENCE_S
    while (file := _locked(path)) is None:
        if monotonic() > until:
            raise Conflict(
                f"execution {execution_id} is driven by process {_holder(path)}; `noetl cancel {execution_id}` stops it."
            )
        sleep(0.02)
    with file:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def driver_of(place: str | None, state: Execution) -> str | None:
    """Give the process of this machine that drives an execution; None where nobody does, or where a server has it."""
    return None if server_of(place) is not None else holder_of(local_settings(place), root_of(state))


async def following(log: History, execution_id: str, follow: bool) -> AsyncIterator[Event]:
    """Give the events of an execution: those that are there, or all until it has ended."""
    from asyncio import sleep as sleep_async

    from noetl.engine.view import ENDED

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
        await sleep_async(_LOOK_S)


def holder_of(found: Settings, execution_id: str) -> str | None:
    """Give the process that drives an execution, or None where nobody does."""
    path = found.locks / execution_id
    if not path.exists():
        return None
    file = _locked(path, shared=True)
    if file is None:
        return _holder(path)
    file.close()
    return None


def _locked(path: Path, *, shared: bool = False) -> TextIO | None:
    """Open and lock a file; None where somebody else has it, or its last holder has just taken it away."""
    file = path.open("a+", encoding="ascii")
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    file.close()
    return None


def _holder(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip() or "unknown"
    except OSError:
        return "unknown"


def as_json(data: Any) -> str:
    """Write plain data on one line."""
    import msgspec

    return msgspec.json.encode(data).decode()
