"""What a shell may complete: executions, steps, playbooks, contexts and the words of an action.

Looks where the command itself would look, for a short time, and says nothing where it finds nothing: a completion never
complains. Tested in tests/acceptance/test_completion_cli.py.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from noetl.ports import History

Found = list[tuple[str, str]]  # a word, and what is said of it
T = TypeVar("T")
_PATIENCE_S = 2.0
_SHOWN = 50


def line() -> list[str]:
    """Give the words of the line that a shell asks to have completed."""
    from typer._completion_classes import completion_init

    completion_init()
    return f"{os.environ.get('COMP_WORDS', '')} {os.environ.get('_TYPER_COMPLETE_ARGS', '')}".split()


def among(*words: str) -> Callable[[str], list[str]]:
    """Complete one of these words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def executions(ctx: typer.Context, incomplete: str) -> Found:
    """Complete the id of an execution, the newest first."""

    async def job(opened: History) -> Found:
        from noetl.ports import Selection

        rows = await opened.executions(Selection(limit=_SHOWN))
        return [(str(row["execution_id"]), f"{row.get('status')} {row.get('path', '')}") for row in rows]

    found = _looked(ctx, job) or []
    return [one for one in [*found, ("last", "the newest one")] if one[0].startswith(incomplete)]


Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The execution; `last` means the newest one of the store.", autocompletion=executions
    ),
]


def steps(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a step of the execution that the command names."""

    async def job(opened: History) -> list[str]:
        from noetl.cli.common.store import plan_of, state_of

        state, _ = await state_of(opened, next((word for word in line() if word.isdecimal()), "last"))
        return [step.name for step in (await plan_of(opened, state)).playbook.workflow]

    return [name for name in _looked(ctx, job) or [] if name.startswith(incomplete)]


def steps_of_file(incomplete: str) -> list[str]:
    """Complete a step of the playbook that the command names."""
    from noetl.cli.common.files import SUFFIXES, read_playbook
    from noetl.dsl.normalize import normalize
    from noetl.dsl.parse import parse

    # The option whose value is being typed has none yet, so the line cannot be taken apart by its grammar.
    content = next((read_playbook(word, []) for word in line() if word.endswith(SUFFIXES)), None)
    tree = normalize(parse(content or b""))
    return [step.name for step in tree.workflow if step.name.startswith(incomplete)]


def playbooks(ctx: typer.Context, incomplete: str) -> Found:
    """Complete a path of the server's catalog."""

    async def job() -> Found:
        from noetl.cli.common.target import connected, the_server

        async with connected(the_server(_place(ctx), "")) as client:
            page = await client.playbooks(search=incomplete or None, limit=_SHOWN)
            return [(one.path, f"version {one.version}") for one in page.playbooks]

    return [one for one in _quietly(job) or [] if one[0].startswith(incomplete)]


def contexts(incomplete: str) -> Found:
    """Complete the name of a context."""
    from noetl.cli.common.contexts import known
    from noetl.model.errors import NoetlError

    with suppress(NoetlError):
        found = [("local", "this machine"), *((name, one.get("server", "")) for name, one in known()[0].items())]
        return [one for one in found if one[0].startswith(incomplete)]
    return []


def _place(ctx: typer.Context) -> str | None:
    return ctx.params.get("server") or ctx.params.get("store")


def _looked(ctx: typer.Context, job: Callable[[History], Awaitable[T]]) -> T | None:
    """Look at the store or the server that the command would look at."""

    async def done() -> T:
        from noetl.cli.common.store import in_store
        from noetl.cli.common.target import connected, server_of

        server = server_of(_place(ctx))
        if server is None:
            return await in_store(_place(ctx), job)
        from noetl.client.history import RemoteHistory

        async with connected(server) as client:
            return await job(RemoteHistory(client))

    return _quietly(done)


def _quietly(job: Callable[[], Awaitable[T]]) -> T | None:
    """Run it, for a short time, and tell of no trouble."""
    import asyncio
    import logging

    from noetl.model.errors import NoetlError

    async def soon() -> T:
        async with asyncio.timeout(_PATIENCE_S):
            return await job()

    logging.disable(logging.CRITICAL)
    with suppress(NoetlError, OSError, TimeoutError):
        return asyncio.run(soon())
    return None
