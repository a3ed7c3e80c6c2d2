"""What an action would do. Tested in tests/server/api/test_previews.py."""

from __future__ import annotations

from collections.abc import Sequence

from noetl.engine.plan.plan import Plan
from noetl.engine.queries.execution_fork import place
from noetl.engine.routing.saga import rolls_back
from noetl.engine.state.execution import Execution
from noetl.model.events import Event
from noetl.wire.answers import Preview

_NAMED = 5  # names in a sentence


def of_cancel(plan: Plan, state: Execution, run: str | None, compensate: bool, abandon: bool) -> Preview:
    """Return what a cancellation ends and undoes."""
    runs = [one.run_id for one in state.runs.values() if one.phase != "routing" and run in (None, one.run_id, one.step)]
    children = [child for child, (owner, _) in state.children.items() if run is None or owner in runs]
    undoes: list[str] = []
    if run is None and not abandon and (compensate or rolls_back(plan, state)):
        undoes = [one.step for one in reversed(state.completed) if one.state == "open"]
    words = [f"Ends {_count(len(runs), 'step-run')}{_names(runs)}"]
    words += [f" and {_count(len(children), 'child execution')}"] if children else []
    words += [f", then undoes {' and '.join(undoes[:_NAMED])}, newest first"] if undoes else []
    words += [", and leaves what is not undone yet"] if abandon else []
    return Preview(ends=runs, children=children, undoes=undoes, says="".join(words) + ".")


def of_completion(state: Execution, step: str) -> Preview:
    """Return what completing a step by hand ends."""
    runs = [one.run_id for one in state.runs.values() if one.step == step and one.phase != "routing"]
    tokens = sum(token.step == step for token in state.tokens.values())
    says = f"Ends {_count(len(runs), 'step-run')}{_names(runs)}" if runs else f"Moves {_count(tokens, 'token')}"
    return Preview(ends=runs, says=f"{says} of `{step}` with this result, without its work.")


def of_fork(events: Sequence[Event], start: str) -> tuple[int, Preview]:
    """Return the last event that a fork keeps, and what it runs. Raises InvalidInput."""
    seq = place(events, start)
    again = [event.entity_id for event in events if event.event_type == "step.scheduled" and event.seq > seq]
    steps = list(dict.fromkeys(again))
    says = f"Starts a new execution with the history up to event {seq}; it runs {_names(steps)[2:] or 'what follows'}"
    return seq, Preview(steps=steps, says=f"{says} again." if steps else f"{says}.")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _names(names: Sequence[str]) -> str:
    if not names:
        return ""
    return ": " + ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
