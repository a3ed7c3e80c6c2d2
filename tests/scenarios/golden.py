"""Readable log of a scenario: without ids, times relative to its start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from noetl.model.events import Event
from noetl.testing.scenario import EXECUTION, Played
from noetl.testing.virtual_time import BEGIN

# Who did it, where it goes on, and what the script says anyway.
_LEFT_OUT = frozenset(
    {
        "worker",
        "started_at",
        "sees",
        "epoch",
        "runtime",
        "pipeline",
        "playbook",
        "resume",
        "number",
        "child_id",
        "delay_ms",
        "payload",
    }
)
_TIMES = frozenset({"at", "until", "available_at"})
_QUIET = frozenset({"playbook.started", "playbook.processed", "task.started"})
_MOST = 400  # events that are written out; of a longer log, the beginning and the end


def golden(played: Played) -> str:
    """Return the text of `events.golden.yaml`."""
    if played.refused is not None:
        return _dump({"refused": played.refused})
    lines = [_dump({"status": _status(played.events)}), "events:\n", *_lines(played.events)]
    for number, (_, events) in enumerate(played.children, 1):
        lines += [f"child_{number}:\n", *_lines(events)]
    text = "".join(lines).replace(EXECUTION, "EXECUTION")
    for number, (child, _) in enumerate(played.children, 1):
        text = text.replace(child, f"CHILD_{number}")
    return text


def _status(events: list[Event]) -> str:
    last = next((event for event in reversed(events) if event.event_type == "playbook.finished"), None)
    return str(last.status) if last is not None else "not ended"


def _lines(events: list[Event]) -> list[str]:
    told = [event for event in events if event.event_type not in _QUIET]
    lines = [f"- {_flow({event.event_type: _told(event)})}" for event in told]
    if len(lines) <= _MOST:
        return lines
    return [*lines[:40], f"- {_flow({'more': len(lines) - 80})}", *lines[-40:]]


def _told(event: Event) -> dict[str, Any]:
    about: dict[str, Any] = {}
    name = event.step_run_id or (event.entity_id if event.entity_type in ("token", "timer", "signal", "step") else "")
    if event.entity_type in ("token", "task", "timer", "signal"):
        about[event.entity_type] = event.entity_id
    if name and name != event.entity_id:
        about["run"] = name
    elif event.entity_type == "step":
        about["step"] = event.entity_id
    for key in ("iteration", "attempt", "status"):
        value = getattr(event, key)
        if value is not None:
            about[key] = value
    return about | _plain(event.payload)


def _plain(payload: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in payload.items() if key not in _LEFT_OUT and value not in ({}, [], None)}
    if "letter" in kept:
        kept["letter"] = {name: kept["letter"][name] for name in ("reason", "attempts")}
    return {key: value - BEGIN if key in _TIMES and isinstance(value, int) else value for key, value in kept.items()}


def _flow(data: Any) -> str:
    text = yaml.safe_dump(data, default_flow_style=True, width=2**20, sort_keys=False, allow_unicode=True)
    return text.removesuffix("...\n")


def _dump(data: Any) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=2**20))
