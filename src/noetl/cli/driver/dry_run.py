"""Shows what `noetl run` would do, for `--dry-run`: the route, and every input that can be known. Nothing runs or is written.

The facts are `noetl.engine.foresee`. Tested in tests/acceptance/test_run_dry.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import time
from typing import Any

import typer
from msgspec import to_builtins

from noetl.cli.common.store import as_json as one_line
from noetl.cli.playbooks.prepare import Prepared
from noetl.engine.foresee import Foreseen, Input, foresee
from noetl.engine.plan import plan
from noetl.engine.start import check
from noetl.model.messages import Start

_WORDS = {"taken": "", "open": "  (open: depends on what runs)", "on failure": "  (on failure)", "never": "  (never)"}
_MOST_SHOWN = 200


def show_route(prepared: Prepared, payload: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the route of a run that does not happen. Raises InvalidPayload."""
    made = plan(prepared.tree, prepared.playbook)
    workload = check(made, "0", Start("dry-run", prepared.path, prepared.playbook, payload), int(time() * 1000))
    found = foresee(made, workload)
    if as_json:
        typer.echo(one_line({"workload": workload, "route": [to_builtins(one) for one in found]}))
        return
    typer.echo(f"{prepared.path} would take this route; nothing was run. Open inputs stand as they are written.")
    for line in _lines(found):
        typer.echo(line)


def _lines(found: tuple[Foreseen, ...]) -> Iterator[str]:
    for number, step in enumerate(found, 1):
        marks = [mark for mark, there in (("perhaps", not step.sure), ("behind a gate", step.gated)) if there]
        yield f"\n{number}. {step.step}" + (f"  ({', '.join(marks)})" if marks else "")
        if step.loop is not None:
            many = _many(step.loop.value) if step.loop.known and isinstance(step.loop.value, list) else "open"
            yield f"   for each {step.loop.name} in {_shown(step.loop)}  ({many})"
        for task in step.tasks:
            yield f"   {task.label}: {task.kind}"
            yield from (f"     {one.name} = {_shown(one)}{_mark(one)}" for one in task.inputs)
        for way in step.ways:
            when = f" when {way.when}" if way.when is not None else ""
            yield f"   → {way.step}{when}{_WORDS[way.taken]}"


def _many(items: list[Any]) -> str:
    return "1 item" if len(items) == 1 else f"{len(items)} items"


def _mark(one: Input) -> str:
    if one.problem is not None:
        return f"  (an error: {one.problem})"
    return "" if one.known else "  (open)"


def _shown(value: Input) -> str:
    text = value.value if isinstance(value.value, str) else one_line(value.value)
    text = " ⏎ ".join(text.strip().splitlines())
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
