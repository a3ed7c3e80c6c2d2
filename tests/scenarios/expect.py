"""Holds a played scenario to what its author wrote down before it was played."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from noetl.engine.decision.builder import status_of
from noetl.model.refs import expanded
from noetl.testing.scenario import Played

_KNOWN = {
    "refused",
    "status",
    "result",
    "ctx",
    "runs",
    "order",
    "error",
    "counts",
    "steps",
    "seen",
    "keys",
    "compensated",
    "stopped",
}


def check(played: Played, expect: Mapping[str, Any]) -> None:
    """Compare everything that the author expects."""
    assert expect, "a scenario says what must come of it"
    assert expect.keys() <= _KNOWN, f"unknown expectations: {expect.keys() - _KNOWN}"
    if "refused" in expect:
        assert played.refused is not None, "it was not refused"
        assert expect["refused"] in played.refused
        assert played.events == [], "a refused start writes nothing"
        return
    assert played.refused is None, played.refused
    state = played.live
    assert state is not None
    assert expect["status"] == status_of(state), state.error
    found: dict[str, Any] = {
        "result": expanded(state.result),
        "steps": {name: {kind: n for kind, n in counts.items() if n} for name, counts in state.counts.items()},
        "runs": " ".join(_runs(played)),
        "order": " ".join(_ends(played)),
        "compensated": state.compensated,
        "keys": [key.partition(":")[2] for key, _, _ in played.tools.calls],
        "stopped": played.stopped,
        "seen": [[name, dict(fields)] for name, fields in played.tools.seen],
    }
    for key, value in expect.items():
        if key in found:
            assert found[key] == value, f"{key}: {found[key]!r}, expected {value!r}"
    for key, value in (expect.get("ctx") or {}).items():
        assert state.ctx.get(key, "(nothing)") == value, f"ctx.{key}: {state.ctx.get(key, '(nothing)')!r}"
    counts = Counter(event.event_type for event in played.events)
    for kind, number in (expect.get("counts") or {}).items():
        assert counts[kind] == number, f"{kind}: {counts[kind]}, expected {number}"
    if "error" in expect:
        _error(dict(state.error or {}), expect["error"])


def _runs(played: Played) -> list[str]:
    runs = (str(event.step_run_id) for event in played.events if event.event_type == "step.scheduled")
    return [run.removesuffix("#1") for run in dict.fromkeys(runs)]


def _ends(played: Played) -> list[str]:
    """Return the runs in the order they ended; `!` failed, `~` was cancelled."""
    marks = {"step.done": "", "step.failed": "!"}
    return [
        str(event.step_run_id).removesuffix("#1") + ("~" if event.status == "cancelled" else marks[event.event_type])
        for event in played.events
        if event.event_type in marks
    ]


def _error(error: Mapping[str, Any], expect: Mapping[str, Any] | None) -> None:
    if expect is None:
        assert not error, error
        return
    for key, value in expect.items():
        if key == "has":
            assert value in error.get("message", ""), error
        else:
            assert error.get(key) == value, error
