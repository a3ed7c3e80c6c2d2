"""Print why an execution is where it is, for `noetl explain ID`.

The analysis is in `noetl.engine.queries.explain`. Tested in tests/acceptance/executions/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import to_builtins

from noetl.cli.output.failure import Error, ErrorPlaces, failure_lines
from noetl.cli.output.format import format_duration, format_time, item_count, to_json
from noetl.cli.runtime.driver_lock import driver_of
from noetl.cli.runtime.environment import reader_mask
from noetl.cli.runtime.store import load_plan, load_state, read_history
from noetl.cli.runtime.terminal import echo
from noetl.clock import SteadyClock
from noetl.engine.decision.builder import is_blocked, status_of
from noetl.engine.queries.explain import Choice, Standing, choices, standings, values
from noetl.model.outcome import fix_of
from noetl.server.workers.presence import groups
from noetl.wiring.embedded import open_team

if TYPE_CHECKING:
    from noetl.engine.state.execution import Execution
    from noetl.ports import History, WorkerInfo
    from noetl.wiring.embedded import Store

_MAX_CHOICES: Final = 12


def explain_execution(given: str, store: str | None, *, as_json: bool) -> None:
    """Print an execution's status, open work and decisions."""

    async def job(history: History) -> None:
        state, events = await load_state(history, given)
        now, pools = SteadyClock().now(), None
        if not state.pool.startswith("local:"):  # a local run has its own worker
            pools = groups(await _load_workers(history), now)
        is_open = state.phase != "ended"
        line = await history.line(state.execution_id) if is_open else None
        open_work = standings(await load_plan(history, state), state, events, pools, now, line) if is_open else ()
        decisions = choices(reader_mask().events(events))
        driver = driver_of(store, state)
        places = ErrorPlaces.of(history, state)
        step, error = await places.ending(state)
        if as_json:
            data: dict[str, Any] = {
                "execution_id": state.execution_id,
                "status": status_of(state),
                "error": error,
                "failure": _failure(state.execution_id, step, error),
                "warnings": state.warnings,
                "failed_items": state.partial,
                "driven_by": driver,
                "standing": [to_builtins(one) for one in open_work],
                "choices": [to_builtins(one) for one in decisions],
            }
            echo(to_json(data))
            return
        failures = [(one["step"], await places.place(one["step"], one.get("error") or {})) for one in state.failures]
        if error is not None and not failures:
            failures.append((step, error))
        status = _status_lines(state, driver, failures)
        for text in (*status, *_open_work_lines(open_work), *_decision_lines(decisions)):
            echo(text)

    read_history(store, job)


def _failure(execution_id: str, step: str | None, error: Error | None) -> dict[str, Any] | None:
    return None if error is None else {"step": step or "", "error": error, "fix": fix_of(error, execution_id)}


async def _load_workers(history: History) -> list[WorkerInfo]:
    if hasattr(history, "workers"):  # a server
        return list(await history.workers())
    return await open_team(cast("Store", history)).workers()


def _status_lines(state: Execution, driver: str | None, failures: Sequence[tuple[str | None, Error]]) -> Iterator[str]:
    yield f"execution {state.execution_id} of {state.path}: {status_of(state)}"
    if state.phase == "ended":
        yield f"It ended at {format_time(state.ended_at)}, after {format_duration(state.ended_at - state.started_at)}."
    elif driver is not None:
        yield f"Process {driver} is driving it."
    elif state.pool and not is_blocked(state):
        yield f"No process is driving it. Continue with `noetl resume {state.execution_id}`."
    if state.review is not None:
        yield f"It waits for a review: {state.review['review']}."
        yield f"Continue it with `noetl unpause {state.execution_id}`, or end it with `noetl cancel {state.execution_id}`."
    elif state.paused:
        yield f"It is paused: no new steps start until `noetl unpause {state.execution_id}`."
    for step, error in failures:
        yield from failure_lines(state.execution_id, step, error)
        facts = [f"{name} {error[name]}" for name in ("kind", "code", "task") if error.get(name)]
        yield f"  ({', '.join(facts)})"
    yield from (f"⚠ {one['step']}: {one['message']}" for one in state.warnings)
    for run_id, count in state.partial.items():
        yield f"{item_count(count)} of {run_id} failed for good; see `noetl dlq groups --execution {state.execution_id}`."


def _open_work_lines(open_work: tuple[Standing, ...]) -> Iterator[str]:
    if open_work:
        yield "\nNot finished:"
    for one in open_work:
        yield f"  {one.what} {one.name} at {one.step}"
        yield f"    waits for  {one.waits_for}"
        if one.read:
            yield f"    it read    {values(reader_mask().data(one.read))}"
        yield f"    since      {format_time(one.since)}"
        yield f"    until      {format_time(one.until) if one.until is not None else 'no time limit'}"
        for limit in one.deadlines:
            time = f"{format_time(limit.at)} " if limit.at is not None else ""
            span = f", {limit.ms / 1000:g} s" if limit.ms is not None else ""
            yield f"    timeout    {time}{limit.what}{span}"
        yield f"    moved by   {one.moved_by}"
        if one.answered_by is not None:
            yield f"    answered by {one.answered_by}"


def _decision_lines(decisions: tuple[Choice, ...]) -> Iterator[str]:
    if decisions:
        yield "\nHow it got here:"
    if len(decisions) > _MAX_CHOICES:
        yield f"  … {len(decisions) - _MAX_CHOICES} earlier decisions; --json prints all"
    for one in decisions[-_MAX_CHOICES:]:
        yield f"  {format_time(one.at)} #{one.seq} {one.step}: {one.decided}"
        yield from (f"      {reason}" for reason in one.because)
