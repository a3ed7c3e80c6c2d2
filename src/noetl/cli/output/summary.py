"""What a command says of an execution when it stops driving it: for people, and as the last line for programs.

Tested in tests/acceptance/test_run.py.
"""

from __future__ import annotations

import json
from time import time
from typing import TYPE_CHECKING

import typer

from noetl.cli.common.store import EXIT_CODES, WAITING, as_json
from noetl.cli.output.progress import clock, seconds
from noetl.engine.decision import status_of
from noetl.engine.view import summary
from noetl.settings import CREDENTIAL

if TYPE_CHECKING:
    from noetl.engine.explain import Standing
    from noetl.engine.state import Execution

_MOST_SHOWN = 20_000


def exit_code(state: Execution) -> int:
    return EXIT_CODES.get(state.outcome or "", WAITING) if state.phase == "ended" else WAITING


def say_summary(state: Execution) -> None:
    typer.echo(as_json(summary(state, int(time() * 1000))))


def say_ending(state: Execution) -> None:
    """Tell people how it ended: the status on stderr, the result on stdout."""
    took = seconds(state.ended_at - state.started_at)
    colour = "green" if state.outcome == "completed" else "red"
    typer.echo(typer.style(f"{state.status} in {took}", fg=colour, bold=True), err=True)
    if state.error is not None and state.outcome != "completed":
        where = f" in step {state.failures[0]['step']}" if state.failures else ""
        typer.echo(f"{state.error.get('kind', 'error')}{where}: {state.error.get('message', '')}", err=True)
        if state.error.get("code") == "NO_CREDENTIAL":
            typer.echo(f"A local run takes credentials from the environment: {CREDENTIAL}<NAME>=…", err=True)
        typer.echo(f"`noetl explain {state.execution_id}` tells how it came to that.", err=True)
    if state.partial:
        count = sum(state.partial.values())
        text = f"{count} failed item{'' if count == 1 else 's'} wait{'s' if count == 1 else ''} in the dead letters"
        typer.echo(f"{text}: `noetl dlq list --execution {state.execution_id}`", err=True)
    if state.compensated is not None:
        typer.echo("compensated" if state.compensated else "not everything could be compensated", err=True)
    if state.result is not None:
        text = json.dumps(state.result, indent=2, ensure_ascii=False)
        typer.echo(
            text
            if len(text) <= _MOST_SHOWN
            else f"{text[:_MOST_SHOWN]}\n… ({len(text):,} characters; --json gives all)"
        )


def say_waiting(state: Execution, standings: tuple[Standing, ...]) -> None:
    """Tell people why nothing more happens here, and what they can do."""
    typer.echo(typer.style(status_of(state), fg="yellow", bold=True), err=True)
    for standing in standings:
        typer.echo(f"  {standing_line(standing)}", err=True)


def standing_line(standing: Standing) -> str:
    """Write one thing that has not ended on a line."""
    until = f", until {clock(standing.until)}" if standing.until is not None else ""
    line = f"{standing.name} at {standing.step} waits for {standing.waits_for}"
    return f"{line}, since {clock(standing.since)}{until}. What moves it: {standing.moved_by}."
