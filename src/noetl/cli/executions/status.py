"""`noetl status`: tells how an execution stands: its steps, what it waits for, its error.

Tested in tests/acceptance/test_run_commands.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from noetl.cli.common.completers import Id
from noetl.cli.common.store import (
    AsJson,
    Place,
    as_json,
    driver_of,
    plan_of,
    reading,
    state_of,
)

if TYPE_CHECKING:
    from noetl.ports import History


def command(id: Id, json: AsJson = False, store: Place = None) -> None:
    """Tell how an execution stands."""

    async def job(opened: History) -> None:
        from time import time

        from noetl.cli.output.progress import clock, seconds
        from noetl.cli.output.summary import standing_line
        from noetl.engine.decision import needs_signal, status_of
        from noetl.engine.explain import standings
        from noetl.engine.view import summary

        state, events = await state_of(opened, id)
        driver = driver_of(store, state)
        if json:
            typer.echo(as_json({**summary(state, int(time() * 1000)), "path": state.path, "driven_by": driver}))
            return
        typer.echo(f"execution {state.execution_id} of {state.path}: {status_of(state)}")
        ended = (
            f", ended {clock(state.ended_at)} after {seconds(state.ended_at - state.started_at)}"
            if state.ended_at
            else ""
        )
        typer.echo(f"started {clock(state.started_at)}{ended}; {state.seq} events")
        for name, counts in state.counts.items():
            said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
            typer.echo(f"  {name}: {said}")
        if state.error is not None:
            typer.echo(f"error: {state.error.get('kind', '')}: {state.error.get('message', '')}")
        if state.compensated is not None:
            typer.echo(f"compensated: {str(state.compensated).lower()}")
        if state.phase == "ended":
            return
        for standing in standings(await plan_of(opened, state), state, events):
            typer.echo(f"  {standing_line(standing)}")
        if driver is not None:
            typer.echo(f"driven by process {driver}")
        elif state.pool and not needs_signal(state):
            typer.echo(f"no process drives it; `noetl resume {state.execution_id}` does.")

    reading(store, job)
