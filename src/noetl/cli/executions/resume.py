"""`noetl resume`: resume a local execution whose process ended, however it ended.

Continues after the last recorded task. Tested in tests/acceptance/executions/test_run_resume.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from noetl.cli.arguments.options import AsJson, ExecutionId, StorePath, WaitForSignal, parse_wait
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.store import existing, load_state, local_settings, with_store
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.engine.state.execution import Execution
    from noetl.wiring.embedded import Store


def command(id: ExecutionId, json: AsJson = False, store: StorePath = None, wait: WaitForSignal = None) -> None:
    """Resume a local execution whose process ended."""

    async def job() -> int:
        from noetl.cli.driver.start import take_over
        from noetl.cli.output.summary import exit_code, print_end
        from noetl.cli.runtime.driver_lock import root_of

        async def load(opened: Store) -> Execution:
            state, _ = await load_state(opened, id)
            if state.phase == "ended":
                await print_end(opened, state, as_json=json)
            return state

        state = await with_store(store, load, to_read=True)
        if state.phase == "ended":
            return exit_code(state)
        if not state.pool.startswith("local:"):
            raise InvalidInput(
                f"Execution {state.execution_id} is not a local run. The workers of its pool continue it."
            )
        settings = existing(local_settings(store))
        return await take_over(settings, state.execution_id, root_of(state), None, parse_wait(wait), as_json=json)

    raise typer.Exit(call(job, fast=True))
