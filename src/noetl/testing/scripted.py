"""Scripted tools: results, errors, durations, or no response.

An outcome is a map: `ok: <result>` or `error: <kind or map>`, with `takes: <ms>` and the kind's own part (`http: {…}`);
`hang: true` never ends. A list is one entry per call, its last for all further calls. `items: {<index>: …}` is for the
items of a loop. A task without a script is a `noop` that returns its `result`. Tested in tests/scenarios.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from noetl.model.outcome import Outcome, TaskError, ok
from noetl.ports import Runner, ToolContext

DEFAULT_MS: Final = 10.0
TIE_MS: Final = 0.001  # no two calls take equally long, so the order of wake-ups does not matter
_OWN: Final = frozenset({"ok", "error", "takes", "hang", "items", "result", "real"})


class ScriptedTools:
    """Tool kinds of a scenario: every kind exists, none does anything real."""

    def __init__(self, outcomes: Mapping[str, Any]) -> None:
        self._outcomes = outcomes
        self._turns: Counter[str] = Counter()
        self.kinds: set[str] = set()
        self.calls: list[tuple[str, str, int]] = []  # idempotency key, `step.task`, attempt
        self.seen: list[tuple[str, Mapping[str, Any]]] = []  # `step.task` and its rendered fields
        self.stopped: list[str] = []  # `step.task` of cancelled calls

    def runner(self, kind: str) -> Runner | None:
        self.kinds.add(kind)
        return self._run

    async def _run(self, fields: Mapping[str, Any], context: ToolContext) -> Outcome:
        name = f"{context.step}.{context.task}"
        self.calls.append((context.idempotency_key, name, context.attempt))
        self.seen.append((name, fields))
        given = self._given(name, context)
        takes = float(given.get("takes", DEFAULT_MS)) + len(self.calls) * TIE_MS
        try:
            if given.get("hang"):
                await asyncio.Event().wait()
            await asyncio.sleep(takes / 1000)
        except asyncio.CancelledError:
            self.stopped.append(name)
            raise
        found = outcome_of(given, fields)
        if context.confirm is not None:
            await context.confirm(found)
        return found

    def _given(self, name: str, context: ToolContext) -> Mapping[str, Any]:
        key = next((key for key in (name, context.step) if key in self._outcomes), None)
        if key is None:
            return {}
        given = self._outcomes[key]
        turn = name
        if isinstance(given, Mapping) and "items" in given:
            index = item_of(context.idempotency_key)
            turn = f"{name}:{index}"
            given = given["items"].get(index, {})
        number = self._turns[turn]
        self._turns[turn] += 1
        found = given[min(number, len(given) - 1)] if isinstance(given, list) else given
        if not isinstance(found, Mapping) or not (found.keys() & _OWN or not found):
            raise ValueError(f"the outcome of {name} is {found!r}; write `ok: …` or `error: …`")
        return found


def outcome_of(given: Mapping[str, Any], fields: Mapping[str, Any]) -> Outcome:
    """Convert a scripted outcome."""
    helpers = {key: value for key, value in given.items() if key not in _OWN}
    error = given.get("error")
    if error is not None:
        told = {"kind": error} if isinstance(error, str) else error
        told = {"message": f"scripted {told['kind']}", **told}
        return Outcome("error", given.get("result"), msgspec.convert(told, TaskError), helpers=helpers)
    return ok(given["ok"] if "ok" in given else fields.get("result"), **helpers)


def item_of(key: str) -> int | None:
    """Return the item index of an idempotency key."""
    parts = key.split(":")
    return int(parts[2]) if len(parts) > 3 and parts[2].isdigit() else None
