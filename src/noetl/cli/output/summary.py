"""End of an execution. Tested in tests/acceptance/executions/test_run.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import time
from typing import TYPE_CHECKING, Final

from noetl.cli.output.failure import Error, ErrorPlaces, failure_lines
from noetl.cli.output.format import format_duration, format_time, to_json
from noetl.cli.runtime.environment import reader_mask
from noetl.cli.runtime.runner import EXIT_CODES, WAITING
from noetl.cli.runtime.terminal import echo, style
from noetl.engine.decision.builder import status_of
from noetl.engine.queries.view import summary
from noetl.model.refs import expanded

if TYPE_CHECKING:
    from noetl.engine.queries.explain import Standing
    from noetl.engine.state.execution import Execution
    from noetl.ports import History

_MAX_RESULT: Final = 20_000


def exit_code(state: Execution) -> int:
    return EXIT_CODES.get(state.outcome or "", WAITING) if state.phase == "ended" else WAITING


async def print_end(
    history: History, state: Execution, *, as_json: bool, files: Mapping[str, str] | None = None
) -> None:
    """Print how an execution ended; `files` are the names of playbooks' files by path."""
    step, error = await ErrorPlaces.of(history, state).ending(state)
    if as_json:
        echo(to_json({**summary(state, int(time() * 1000)), "error": error}))
    else:
        _print_result(state, step, error, files or {})


def _print_result(state: Execution, step: str | None, error: Error | None, files: Mapping[str, str]) -> None:
    """Print the status and the error to stderr, the result to stdout."""
    took = format_duration(state.ended_at - state.started_at)
    colour = "green" if state.outcome == "completed" else "red"
    echo(style(f"{state.status} in {took}", fg=colour, bold=True), err=True)
    if error is not None and state.outcome != "completed":
        for line in failure_lines(state.execution_id, step, error, files=files):
            echo(line, err=True)
        echo(f"`noetl explain {state.execution_id}` shows how it came to that.", err=True)
    if state.partial:
        count = sum(state.partial.values())
        items = "1 failed item is" if count == 1 else f"{count} failed items are"
        echo(f"{items} in the dead letters: `noetl dlq list --execution {state.execution_id}`", err=True)
    if state.compensated is not None:
        echo("compensated" if state.compensated else "not everything could be compensated", err=True)
    if state.result is not None and state.outcome in ("completed", "partial"):  # a failed run has no result
        text = json.dumps(reader_mask().data(expanded(state.result)), indent=2, ensure_ascii=False)
        if len(text) > _MAX_RESULT:
            text = f"{text[:_MAX_RESULT]}\n… ({len(text):,} characters; --json prints all)"
        echo(text)


def print_waiting(state: Execution, standings: tuple[Standing, ...]) -> None:
    """Print what an execution is waiting for, and what can move it."""
    echo(style(status_of(state), fg="yellow", bold=True), err=True)
    for standing in standings:
        echo(f"  {standing_line(standing)}", err=True)


def standing_line(standing: Standing) -> str:
    """Return one unfinished item as a line."""
    until = f", until {format_time(standing.until)}" if standing.until is not None else ""
    line = f"{standing.name} at {standing.step} waits for {standing.waits_for}"
    return f"{line}, since {format_time(standing.since)}{until}. What moves it: {standing.moved_by}."
