"""`noetl status`: show the status of an execution and what it waits for.

Tested in tests/acceptance/executions/test_run_commands.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.runtime.store import load_plan, load_state, read_history
from noetl.cli.runtime.terminal import echo

if TYPE_CHECKING:
    from noetl.ports import History


def command(id: ExecutionId, json: AsJson = False, store: Place = None) -> None:
    """Show the status of an execution and what it is waiting for."""

    async def job(history: History) -> None:
        from time import time

        from noetl.cli.output.failure import ErrorPlaces, failure_lines
        from noetl.cli.output.format import format_duration, format_time, to_json
        from noetl.cli.output.summary import standing_line
        from noetl.cli.runtime.driver_lock import driver_of
        from noetl.engine.decision.builder import is_blocked, status_of
        from noetl.engine.queries.explain import standings
        from noetl.engine.queries.view import step_counts, summary

        state, events = await load_state(history, id)
        driver = driver_of(store, state)
        step, error = await ErrorPlaces.of(history, state).ending(state)
        if json:
            more = {"error": error, "path": state.path, "driven_by": driver}
            echo(to_json({**summary(state, int(time() * 1000)), **more}))
            return
        echo(f"execution {state.execution_id} of {state.path}: {status_of(state)}")
        ended = ""
        if state.ended_at:
            took = format_duration(state.ended_at - state.started_at)
            ended = f", ended {format_time(state.ended_at)} after {took}"
        echo(f"started {format_time(state.started_at)}{ended}; {state.seq} events")
        for name, counts in step_counts(state).items():
            listed = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
            echo(f"  {name}: {listed}")
        if error is not None:
            echo("\n".join(failure_lines(state.execution_id, step, error, frames=False)))
        for warning in state.warnings:
            echo(f"⚠ {warning['step']}: {warning['message']}")
        if state.compensated is not None:
            echo(f"compensated: {str(state.compensated).lower()}")
        if state.phase == "ended":
            return
        for standing in standings(await load_plan(history, state), state, events):
            echo(f"  {standing_line(standing)}")
        if driver is not None:
            echo(f"driven by process {driver}")
        elif state.pool and not is_blocked(state):
            echo(f"No process is driving it. Continue with `noetl resume {state.execution_id}`.")

    read_history(store, job)
