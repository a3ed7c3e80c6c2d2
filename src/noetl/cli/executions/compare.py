"""`noetl compare`: show where two executions part, and what differs.

Runs and writes nothing. Tested in tests/acceptance/executions/test_compare_cli.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.arguments.completers import complete_execution
from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.runtime.store import load_plan, load_state, read_history, resolve_id
from noetl.cli.runtime.terminal import echo
from noetl.wire.screens.compare import LAST_GOOD

if TYPE_CHECKING:
    from noetl.ports import History
    from noetl.server.operations.comparisons import Side
    from noetl.wire.screens.compare import Compared


def command(
    id: ExecutionId,
    other: Annotated[
        str,
        typer.Argument(
            metavar="OTHER",
            help=f"Execution to compare with; `{LAST_GOOD}` is the newest of the same path before it that completed.",
            autocompletion=complete_execution,
        ),
    ] = LAST_GOOD,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Compare two executions: where they part, values, text, steps."""

    async def job(history: History) -> None:
        from noetl.cli.output.comparison import comparison_lines
        from noetl.cli.output.format import to_json

        this = await resolve_id(history, id)
        that = other if other == LAST_GOOD else await resolve_id(history, other)
        if hasattr(history, "compare"):  # a server compares its own
            found: Compared = await history.compare(this, that)
        else:
            found = await _compare(history, this, that)
        if json:
            from msgspec import to_builtins

            echo(to_json(to_builtins(found)))
            return
        for line in comparison_lines(found):
            echo(line)

    read_history(store, job)


async def _compare(history: History, this: str, other: str) -> Compared:
    from noetl.cli.runtime.environment import reader_mask
    from noetl.clock import SteadyClock
    from noetl.model.errors import UnknownExecution
    from noetl.server.operations.comparisons import Comparer, last_good
    from noetl.server.processes.difference import unified

    async def differ(before: bytes, after: bytes, names: tuple[str, str]) -> str:
        return unified(before, after, *names)

    mine = await _side(history, this)
    if other == LAST_GOOD:
        found = await history.executions(last_good(mine.row))
        if not found:
            path = mine.row.get("path", "")
            raise UnknownExecution(
                f"No execution of `{path}` before {this} has completed. Name another: `noetl runs` lists them."
            )
        other = str(found[0]["execution_id"])
    comparer = Comparer(history, reader_mask(), SteadyClock().now(), differ)
    return await comparer.compare(mine, await _side(history, other))


async def _side(history: History, execution_id: str) -> Side:
    from noetl.engine.queries.track import build
    from noetl.server.operations.comparisons import Side

    state, events = await load_state(history, execution_id)
    row = await history.execution(execution_id)
    track = build(await load_plan(history, state), execution_id, events)
    return Side(row or {}, track, state.workload)
