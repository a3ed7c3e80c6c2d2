"""Send a decision to the one wait of an execution that expects it.

Shared by `approve` and `reject`. Tested in tests/acceptance/executions/test_run_approve.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetl.cli.driver.drive import new_id
from noetl.cli.driver.send import send
from noetl.cli.runtime.environment import user_name
from noetl.cli.runtime.store import load_plan, load_state, with_history
from noetl.engine.queries.decisions import APPROVED, decision
from noetl.engine.queries.explain import Standing, standings
from noetl.model.errors import InvalidInput
from noetl.model.messages import Signal

if TYPE_CHECKING:
    from noetl.ports import History


async def send_decision(
    place: str | None,
    given: str,
    *,
    approved: bool,
    by: str | None,
    comment: str,
    signal: str | None,
    as_json: bool,
) -> int:
    """Answer a wait; drive the execution if it is local and nothing drives it."""

    async def job(history: History) -> tuple[str, str]:
        state, events = await load_state(history, given)
        if state.phase == "ended":
            raise InvalidInput(f"Execution {state.execution_id} has ended ({state.status}) and waits for no decision.")
        open_work = standings(await load_plan(history, state), state, events)
        return state.execution_id, choose(state.execution_id, open_work, signal)

    execution_id, name = await with_history(place, job)
    message = Signal(new_id(), name, decision(approved, by or user_name() or "cli", comment))
    notice = f"{'approved' if approved else 'rejected'} {name} of"
    return await send(place, execution_id, message, notice, as_json=as_json)


def choose(execution_id: str, open_work: tuple[Standing, ...], wanted: str | None) -> str:
    """Return the name of the signal to send. Raises InvalidInput if it is not clear."""
    signals = list(dict.fromkeys(one.signal for one in open_work if one.signal is not None))
    decisions = list(dict.fromkeys(one.signal for one in open_work if one.signal is not None and one.decision))
    if wanted is not None:
        if wanted in signals:
            return wanted
        raise InvalidInput(f"Execution {execution_id} does not wait for the signal `{wanted}`. {_waits(open_work)}")
    if len(decisions) == 1:
        return decisions[0]
    if decisions:
        names = ", ".join(f"`{name}`" for name in decisions)
        raise InvalidInput(f"Execution {execution_id} waits for several decisions: {names}. Choose with --signal NAME.")
    hint = ""
    if signals:
        hint = f" The playbook does not read `{APPROVED}` of the answer; to send a decision anyway, add --signal {signals[0]}."
    raise InvalidInput(f"Execution {execution_id} waits for no decision. {_waits(open_work)}{hint}")


def _waits(open_work: tuple[Standing, ...]) -> str:
    waits = list(dict.fromkeys(f"{one.step} waits for {one.waits_for}" for one in open_work))
    return f"{'; '.join(waits[:5])}." if waits else "It waits for nothing."
