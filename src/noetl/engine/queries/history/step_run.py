"""One step-run, or one item of its loop, as its events tell it.

Tested in tests/unit/engine/queries/history/test_step_run.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from noetl.engine.state.execution import Execution
from noetl.engine.state.frames import Claims
from noetl.model.events import Event
from noetl.model.manifest import within
from noetl.model.refs import expanded, is_ref

_STARTED = ("step.started", "loop.iteration.started")
_TASK_ENDS = {"task.attempt.done": True, "task.attempt.failed": False, "task.done": True, "task.failed": False}
_REPAIRS = ("step.repaired", "loop.item.repaired")
_ENDS = {
    "step.done": "done",
    "step.failed": "failed",
    "loop.iteration.done": "done",
    "loop.iteration.failed": "failed",
    "step.repaired": "repaired",
    "loop.item.repaired": "repaired",
}


class Judged(Struct, frozen=True):
    """What the policy of a task decided on an outcome."""

    do: str
    rule: int | None = None
    delay_ms: float | None = None
    read: Mapping[str, Any] | None = None


class Attempt(Struct):
    """One attempt of a task; `ok` is None while it runs."""

    task: str
    attempt: int
    kind: str = ""
    seq: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    ok: bool | None = None
    error: Any = None
    decision: Judged | None = None


class RunView(Struct):
    """A step-run or an item: what it got, what was tried, and how it ended."""

    run: str
    item: int | None = None
    step: str = ""
    number: int = 0
    role: str = "step"
    state: str = "scheduled"  # scheduled, running, waiting, done, failed, skipped, cancelled, forced, repaired
    args: Mapping[str, Any] = {}
    value: Any = None  # of an item; a reference if the list is stored
    key: str | None = None  # of a cursor's row
    scheduled_at: int = 0
    scheduled_seq: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    ended_seq: int | None = None
    worker: str | None = None
    workers: list[str] = []  # that started it, in order
    attempts: list[Attempt] = []
    signal: str | None = None  # that it waits or waited for
    child: str | None = None
    until: int | None = None
    result: Any = None
    ref: str | None = None  # of a stored result
    error: Any = None
    loop: Mapping[str, int] | None = None  # counts, of a loop that has ended
    by: str | None = None  # who completed it by hand
    reason: str | None = None  # why, if that person said so


class RunHistory:
    """Collects the view of a step-run from its events, in order."""

    def __init__(self, run: str, item: int | None = None) -> None:
        self.view = RunView(run, item)
        self.is_known = False
        self._attempts: dict[tuple[str, int], Attempt] = {}
        self._kinds: dict[str, str] = {}
        self._claims = Claims()
        self._claimed = 0  # items that the claims of a cursor made
        self._forced: Event | None = None

    def add(self, event: Event) -> None:
        """Take the next event; others' events change nothing."""
        view, payload = self.view, event.payload
        if event.event_type == "step.forced" and event.entity_id == view.run.rpartition("#")[0]:
            self._forced = event
        owner = payload.get("of") if event.event_type in _REPAIRS else event.step_run_id
        if owner != view.run:
            return
        self.is_known = True
        for value, key in self._claims.items(event.event_type, payload):
            if self._claimed == view.item:
                view.value, view.key = value, key
            self._claimed += 1
        if event.event_type == "step.scheduled":
            self._scheduled(event)
        elif event.event_type in _STARTED:
            self._started(event)
        elif event.event_type == "loop.started":
            self._listed(payload)
        elif event.event_type == "loop.done":
            view.loop = payload.get("stats")
        elif event.iteration == view.item:
            self._own(event)

    def _scheduled(self, event: Event) -> None:
        view, payload = self.view, event.payload
        if view.ended_seq is None:
            view.state = "scheduled"
        if not view.scheduled_seq:
            view.step, view.number = event.entity_id, int(payload.get("number", 0))
            view.args, view.role = payload.get("args") or {}, str(payload.get("role", "step"))
            view.scheduled_at, view.scheduled_seq = event.timestamp, event.seq

    def _started(self, event: Event) -> None:
        view, payload = self.view, event.payload
        start = payload.get("start")
        if view.item is not None:
            count = int(payload.get("count", 0))
            if start is None or not int(start) <= view.item < int(start) + count:
                return
        elif event.event_type != "step.started":
            return
        view.worker = str(payload.get("worker") or "") or None
        view.workers += [view.worker] if view.worker else []
        view.started_at = view.started_at or event.timestamp
        if view.ended_seq is None:
            view.state = "running"

    def _listed(self, payload: Mapping[str, Any]) -> None:
        item, items = self.view.item, payload.get("items")
        if item is None or items is None:
            return
        if isinstance(items, Mapping):
            stored = "range" not in items
            self.view.value = within(items, item, 1) if stored else _at(range(*items["range"]), item)
        else:
            self.view.value = _at(items, item)

    def _own(self, event: Event) -> None:
        view, payload, kind = self.view, event.payload, event.event_type
        if kind in ("task.started", "task.attempt.started"):
            self._kinds.setdefault(event.entity_id, str(payload.get("kind", "")))
            self._attempt(event)
        elif kind in _TASK_ENDS:
            self._tried(event)
        elif kind == "policy.task.evaluated":
            rule, do = payload.get("rule"), str(payload.get("do", ""))
            self._attempt(event).decision = Judged(do, rule, payload.get("delay_ms"), payload.get("read"))
        elif kind == "step.suspended":
            view.state, view.until = "waiting", payload.get("until")
            view.signal, view.child = payload.get("signal"), payload.get("child_id")
        elif kind == "step.woken":
            view.state = "running"
        elif kind in _ENDS:
            self._ended(event)

    def _attempt(self, event: Event) -> Attempt:
        key = (str(event.task_run_id or event.entity_id), event.attempt or 1)
        found = self._attempts.get(key)
        if found is None:
            kind = self._kinds.get(event.entity_id, "")
            found = Attempt(event.entity_id, key[1], kind, event.seq, event.timestamp)
            self._attempts[key] = found
            self.view.attempts.append(found)
        return found

    def _tried(self, event: Event) -> None:
        found = self._attempt(event)
        if found.ok is not None:
            return  # the end of the task repeats that of its last attempt
        found.ok, found.error, found.ended_at = (
            _TASK_ENDS[event.event_type],
            event.payload.get("error"),
            event.timestamp,
        )
        found.started_at = event.payload.get("started_at", found.started_at)
        if event.duration_ms is not None and found.started_at is not None:
            found.ended_at = found.started_at + round(event.duration_ms)

    def _ended(self, event: Event) -> None:
        view, payload = self.view, event.payload
        state = _ENDS[event.event_type]
        if event.status in ("skipped", "cancelled"):
            state = event.status
        forced = self._forced  # before its own events, if a token was parked: it is scheduled after it
        if forced is not None and forced.seq >= view.scheduled_seq - 1 and state == "done":
            state = "forced"
            view.by, view.reason = forced.payload.get("by") or None, forced.payload.get("reason")
        view.state = state
        view.ended_at, view.ended_seq = event.timestamp, event.seq
        result = payload.get("result")
        view.result, view.error = expanded(result), payload.get("error")
        view.ref = str(result["ref"]) if is_ref(result) else None


def open_state(state: Execution, view: RunView) -> str:
    """Return the state of an item of a running loop that has not ended, or the view's."""
    run = state.runs.get(view.run)
    if run is None or run.loop is None or view.item is None or view.ended_seq is not None:
        return view.state
    loop = run.loop
    if view.item in loop.suspended:
        return "waiting"
    for piece in loop.pieces.values():
        if view.item in piece.pending:
            return "running" if piece.epoch else "queued"
    return "not issued"


def _at(items: Any, place: int) -> Any:
    return items[place] if place < len(items) else None
