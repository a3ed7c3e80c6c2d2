"""Print what `noetl run` would do: the route and every known input.

The analysis is in `noetl.engine.queries.dry_run`. Tested in tests/acceptance/executions/test_run_dry.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import time
from typing import Any, Final

from msgspec import to_builtins

from noetl.cli.output.format import item_count, shorten, to_json
from noetl.cli.playbooks.prepare import Prepared
from noetl.cli.runtime.environment import reader_mask
from noetl.cli.runtime.terminal import echo
from noetl.engine.plan.plan import plan
from noetl.engine.queries.dry_run import Foreseen, Input, foresee
from noetl.engine.routing.start import check
from noetl.model.messages import Start

_MARKS: Final = {
    "taken": "",
    "open": "  (open: depends on results)",
    "on failure": "  (on failure)",
    "never": "  (never)",
}
_MAX_VALUE: Final = 200


def print_route(prepared: Prepared, payload: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the route of a run without running it. Raises InvalidPayload."""
    made = plan(prepared.tree, prepared.playbook)
    workload = check(made, "0", Start("dry-run", prepared.path, prepared.playbook, payload), int(time() * 1000))
    route = foresee(made, workload)
    if as_json:
        echo(to_json({"workload": workload, "route": [to_builtins(one) for one in route]}))
        return
    echo(f"Route of {prepared.path}; nothing was run. Open inputs are shown as written.")
    for line in _route_lines(route):
        echo(line)


def _route_lines(route: tuple[Foreseen, ...]) -> Iterator[str]:
    for number, step in enumerate(route, 1):
        marks = [mark for mark, applies in (("perhaps", not step.sure), ("behind a gate", step.gated)) if applies]
        yield f"\n{number}. {step.step}" + (f"  ({', '.join(marks)})" if marks else "")
        if step.loop is not None:
            many = item_count(len(step.loop.value)) if step.loop.known and isinstance(step.loop.value, list) else "open"
            yield f"   for each {step.loop.name} in {_format_input(step.loop)}  ({many})"
        for task in step.tasks:
            yield f"   {task.label}: {task.kind}"
            yield from (f"     {one.name} = {_format_input(one)}{_mark(one)}" for one in task.inputs)
        for way in step.ways:
            when = f" when {way.when}" if way.when is not None else ""
            yield f"   → {way.step}{when}{_MARKS[way.taken]}"


def _mark(one: Input) -> str:
    if one.problem is not None:
        return f"  (error: {one.problem})"
    return "" if one.known else "  (open)"


def _format_input(value: Input) -> str:
    shown = reader_mask().under(value.name, value.value)
    text = shown if isinstance(shown, str) else to_json(shown)
    return shorten(" ⏎ ".join(text.strip().splitlines()), _MAX_VALUE)
