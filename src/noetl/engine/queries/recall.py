"""Recovers the work of dead letters from the log of their execution.

The log is folded up to each failure, so a retry sees what the failed run saw. The letter's own payload is not used,
because secrets are masked there. Tested in tests/unit/engine/handlers/test_redrive.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from noetl.engine.state.dead_letters import is_of_message
from noetl.engine.state.evolve import evolve
from noetl.engine.state.execution import Execution, StepRun
from noetl.model.events import Event
from noetl.model.ids import message_digest
from noetl.model.letters import DeadLetter
from noetl.model.manifest import within
from noetl.model.messages import Again

_FAILURES = ("loop.iteration.failed", "step.failed")


def recalled(events: Sequence[Event], letters: Iterable[DeadLetter]) -> dict[str, Again]:
    """Return the work of an execution's letters, as far as the log holds it."""
    wanted = {(letter.run_id, letter.loop_index): letter for letter in letters}
    messages = [
        (letter, _message(events, letter.run_id, letter.step_id))
        for letter in wanted.values()
        if is_of_message(letter.run_id)
    ]
    work = {letter.message_id: again for letter, again in messages if again is not None}
    state: Execution | None = None
    for event in events:
        state = state or Execution(event.execution_id)
        letter = wanted.get((str(event.step_run_id), event.iteration)) if event.event_type in _FAILURES else None
        run = state.runs.get(letter.run_id) if letter is not None else None
        if letter is not None and run is not None and letter.message_id not in work:
            work[letter.message_id] = _again(run, letter)
        evolve(state, event)
    return work


def _message(events: Sequence[Event], of: str, step: str) -> Again | None:
    poisoned = [event for event in events if event.event_type == "message.poisoned" and event.payload.get("of") == of]
    message: Mapping[str, Any] = poisoned[-1].payload.get("message") or {} if poisoned else {}
    if not message:
        return None
    stem = f"{message_digest(str(message['message_id']))}."
    applied = {"applied": True} if any(event.event_id.startswith(stem) for event in events) else {}
    return Again(of, step, {"message": message, **applied})


def _again(run: StepRun, letter: DeadLetter) -> Again:
    work: dict[str, Any] = {
        "number": run.number - run.attempt + 1,
        "args": run.args,
        "task": letter.task,
        "attempts": letter.attempts,
        "first_seen": letter.first_seen,
        "replays": letter.replays,
    }
    work |= {"role": run.role} if run.role != "step" else {}
    work |= {"seen": msgspec.to_builtins(run.seen)} if run.seen is not None else {}
    work |= {name: getattr(run, name) for name in ("compensates", "pool", "priority") if getattr(run, name)}
    if letter.loop_index is not None and run.loop is not None:
        work |= _item(run, letter.loop_index)
        work |= {"key": letter.loop_key} if letter.loop_key is not None else {}
    return Again(letter.run_id, letter.step_id, work, letter.loop_index)


def _item(run: StepRun, index: int) -> Mapping[str, Any]:
    loop = run.loop
    assert loop is not None
    total = {} if loop.cursor else {"total": loop.total}
    here = loop.here
    if here is None:  # the list is stored: the worker reads its range
        return {"source": within(loop.items, index, 1), **total}
    return {"item": here[index] if index < len(here) else None, **total}
