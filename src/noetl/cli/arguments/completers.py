"""Shell completion of executions, steps, playbooks and contexts.

Uses a short timeout and prints no errors. Tested in tests/acceptance/language/test_completion_cli.py.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from noetl.ports import History

Completions = list[tuple[str, str]]  # (word, description)
T = TypeVar("T")
_TIMEOUT_S = 2.0
_MAX_ROWS = 50


def completion_line() -> list[str]:
    """Return the words of the command line that the shell asks to complete."""
    from typer.completion import get_completion_inspect_parameters

    get_completion_inspect_parameters()  # registers the shells
    return f"{os.environ.get('COMP_WORDS', '')} {os.environ.get('_TYPER_COMPLETE_ARGS', '')}".split()


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Return a completer for a fixed list of words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def complete_execution(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete an execution ID, newest first."""

    async def job(history: History) -> Completions:
        from noetl.ports import Selection

        rows = await history.executions(Selection(limit=_MAX_ROWS))
        return [(str(row["execution_id"]), f"{row.get('status')} {row.get('path', '')}") for row in rows]

    found = _query_history(ctx, job) or []
    return [one for one in [*found, ("last", "the newest one")] if one[0].startswith(incomplete)]


def complete_step(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a step of the execution on the command line."""

    async def job(history: History) -> list[str]:
        from noetl.cli.runtime.store import load_plan, load_state

        execution_id = next((word for word in completion_line() if word.isdecimal()), "last")
        state, _ = await load_state(history, execution_id)
        return [step.name for step in (await load_plan(history, state)).playbook.workflow]

    return [name for name in _query_history(ctx, job) or [] if name.startswith(incomplete)]


def complete_step_of_file(incomplete: str) -> list[str]:
    """Complete a step of the playbook file on the command line."""
    from noetl.cli.arguments.files import SUFFIXES, read_file
    from noetl.dsl.reading.parse import parse
    from noetl.dsl.tree.normalize import normalize

    # The option being typed has no value yet, so the parser cannot split the line.
    content = next((read_file(word, []) for word in completion_line() if word.endswith(SUFFIXES)), None)
    tree = normalize(parse(content or b""))
    return [step.name for step in tree.workflow if step.name.startswith(incomplete)]


def complete_playbook(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete a path of the server's catalog."""

    async def job() -> Completions:
        from noetl.cli.runtime.target import connect, require_server

        async with connect(require_server(_place(ctx), "")) as client:
            page = await client.playbooks(search=incomplete or None, limit=_MAX_ROWS)
            return [(one.path, f"version {one.version}") for one in page.playbooks]

    return [one for one in _run_quietly(job) or [] if one[0].startswith(incomplete)]


def complete_context(incomplete: str) -> Completions:
    """Complete the name of a context."""
    from noetl.cli.runtime.contexts import load_contexts
    from noetl.model.errors import NoetlError

    with suppress(NoetlError):
        contexts = load_contexts()[0].items()
        found = [("local", "this machine"), *((name, one.get("server", "")) for name, one in contexts)]
        return [one for one in found if one[0].startswith(incomplete)]
    return []


def _place(ctx: typer.Context) -> str | None:
    return ctx.params.get("server") or ctx.params.get("store")


def _query_history(ctx: typer.Context, job: Callable[[History], Awaitable[T]]) -> T | None:
    from noetl.cli.runtime.store import with_history

    return _run_quietly(lambda: with_history(_place(ctx), job))


def _run_quietly(job: Callable[[], Awaitable[T]]) -> T | None:
    import asyncio
    import logging

    from noetl.model.errors import NoetlError

    async def run_job() -> T:
        async with asyncio.timeout(_TIMEOUT_S):
            return await job()

    logging.disable(logging.CRITICAL)
    with suppress(NoetlError, OSError, TimeoutError):
        return asyncio.run(run_job())
    return None
