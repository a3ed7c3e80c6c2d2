"""`noetl reject`: answer a wait with `{approved: false, by, comment}`.

Exit codes are those of `noetl signal`. Tested in tests/acceptance/executions/test_run_approve.py.
"""

from __future__ import annotations

import typer

from noetl.cli.arguments.options import AsJson, Comment, DecidedBy, DecisionSignal, ExecutionId, Place
from noetl.cli.runtime.runner import call


def command(
    id: ExecutionId,
    by: DecidedBy = None,
    comment: Comment = "",
    signal: DecisionSignal = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Reject what an execution waits for.

    Sends the signal of the wait or gate whose answer the playbook reads as `approved`.
    """

    async def job() -> int:
        from noetl.cli.driver.decision import send_decision

        return await send_decision(store, id, approved=False, by=by, comment=comment, signal=signal, as_json=json)

    raise typer.Exit(call(job))
