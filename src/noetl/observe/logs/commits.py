"""Log events of a server, derived from what it has committed.

So the log lines and the event log cannot disagree, and a level that is off costs nothing. Tested in
tests/observe/test_logs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from noetl.engine.decision.work import WORK_EVENTS
from noetl.engine.plan.plan import Plan
from noetl.model.commit import Commit
from noetl.model.events import Event
from noetl.model.letters import DeadLetter
from noetl.model.outcome import class_of
from noetl.model.work import playbook_of
from noetl.observe.logs.lines import SERVER_EVENTS
from noetl.observe.logs.table import ALL, LOG_EVENTS
from noetl.observe.task_facts import TaskFacts, run_by, task_facts

Line = tuple[str, dict[str, Any]]  # name of a log event, and its fields
PlanOf = Callable[[str], Plan | None]  # content hash → plan, if it is in memory
_MOST: Final = 10_000  # cached steps
_LEASE: Final = "lease:"  # begins the messages of leases that expired


class CommitLog:
    """Logs the events of commits; `is_on` is false if no level of them is."""

    def __init__(self, plan_of: PlanOf) -> None:
        self._plan_of = plan_of
        names = {one.name for one in ALL if one.source == "server" and SERVER_EVENTS.is_on(one.level)}
        self._readers = {kind: reader for kind, (made, reader) in _READERS.items() if names & set(made)}
        self._names = frozenset(names)
        self._sinks: dict[tuple[str, str], tuple[TaskFacts, ...]] = {}  # of steps of playbooks
        self.is_on = bool(names)

    def committed(self, commits: Sequence[Commit]) -> None:
        """Log the events of commits."""
        for commit in commits:
            readers, lines = self._readers, list[Line]()
            if any(event.event_type in readers for event in commit.events):
                lines += self._read(commit)
            if commit.letters:
                lines += (_dead(change.letter) for change in commit.letters if change.letter is not None)
            if commit.consumed and (commit.work or commit.events):
                lines += _reclaimed(commit)
            for name, fields in lines:
                if name in self._names:
                    SERVER_EVENTS.log(LOG_EVENTS[name].level, name, fields)

    def _read(self, commit: Commit) -> Iterator[Line]:
        plan = self._plan_of(str(commit.projection.get("playbook", "")))
        if len(self._sinks) > _MOST:
            self._sinks.clear()
        reading = Reading(commit, plan, self._names, self._sinks)
        for event in commit.events:
            reader = self._readers.get(event.event_type)
            if reader is not None:
                yield from reader(reading, event)


class Reading:
    """The log events of one commit."""

    def __init__(
        self,
        commit: Commit,
        plan: Plan | None,
        names: frozenset[str],
        sinks: dict[tuple[str, str], tuple[TaskFacts, ...]],
    ) -> None:
        self._commit = commit
        self._plan = plan
        self._names = names  # of the events that are logged
        self._sinks = sinks  # cache
        self._edges: dict[tuple[str | None, str], int] = {}  # (run, target) → index of the arc that was taken
        self._stats: dict[str | None, Any] = {}  # of loops that ended

    def _line(self, name: str, event: Event, own: Mapping[str, Any], step: str = "") -> Line:
        """Return an event with its own fields first, then those that every line has."""
        workflow = self._commit.projection.get("path")
        where = {"execution_id": event.execution_id, "workflow_ref": workflow, "step_id": step or event.entity_id}
        where |= {"call_id": event.step_run_id, "loop_index": event.iteration}
        return name, {key: value for key, value in own.items() if value is not None} | where

    def routed(self, event: Event) -> Iterator[Line]:
        taken = event.payload.get("taken", ())
        for arc in event.payload.get("arcs", ()):
            index, target, when = arc.get("arc"), str(arc.get("step", "")), arc.get("when")
            if arc.get("error"):
                told = {"action": "skip", "edge_index": index, "error": str(arc["error"])}
                yield self._line("when_eval_error", event, told)
            if index in taken and "step_called" in self._names:
                self._edges[event.step_run_id, target] = index
                told = {"from_step": event.entity_id, "edge_index": index, "target_step": target, "condition": when}
                yield self._line("route_edge_selected", event, told)

    def called(self, event: Event) -> Iterator[Line]:
        cause, step = event.payload.get("event") or {}, str(event.payload.get("step", ""))
        before = cause.get("step")
        reason = f"predecessor:{before}" if before else str(cause.get("name", ""))
        edge = self._edges.get((event.step_run_id, step))
        name, fields = self._line("step_called", event, {"reason": reason, "edge_index": edge}, step)
        yield name, fields | {"call_id": None}  # the run comes later

    def parked(self, event: Event) -> Iterator[Line]:
        step = str(event.payload.get("step", ""))
        rules = () if self._plan is None or step not in self._plan.net.index else self._plan.step(step).admit or ()
        texts = [str(rule.when.data) for rule in rules if rule.when is not None]
        yield self._line("step_parked", event, {"when_expr": "; ".join(texts) or None, "when_result": False}, step)

    def gated(self, event: Event) -> Iterator[Line]:
        if event.payload.get("errors"):
            action = "park" if self._parks(event) else "fail"
            yield self._line("when_eval_error", event, {"action": action, "error": "; ".join(event.payload["errors"])})

    def _parks(self, event: Event) -> bool:
        return not any(
            other.event_type == "step.scheduled" and other.entity_id == event.entity_id for other in self._commit.events
        )

    def scheduled(self, event: Event) -> Iterator[Line]:
        if self._loops(event):
            return
        yield from self._dispatched(event, None)
        yield from self._queued(event, event.step_run_id)

    def _loops(self, event: Event) -> bool:
        step = None if self._plan is None or event.entity_id not in self._plan.net.index else event.entity_id
        return self._plan is not None and step is not None and self._plan.step(step).loop is not None

    def looped(self, event: Event) -> Iterator[Line]:
        total = None if event.payload.get("cursor") else event.payload.get("total")
        yield from self._dispatched(event, {"total": total, "mode": event.payload.get("mode")})

    def _dispatched(self, event: Event, loop_plan: Mapping[str, Any] | None) -> Iterator[Line]:
        yield self._line("step_dispatch", event, {"loop_plan": loop_plan})
        if self._plan is None or event.entity_id not in self._plan.net.index:
            return
        place = (self._plan.playbook_hash, event.entity_id)
        if place not in self._sinks:
            found = (task_facts(run_by(self._plan, task)) for task in self._plan.step(event.entity_id).tasks)
            self._sinks[place] = tuple(facts for facts in found if facts.sink is not None)
        for facts in self._sinks[place]:
            yield self._line("sink_dispatch", event, {"sink_id": facts.sink, "sink_type": facts.kind})

    def ranged(self, event: Event) -> Iterator[Line]:
        yield from self._queued(event, f"{event.step_run_id}:{event.payload.get('chunk')}")

    def _queued(self, event: Event, name: str | None) -> Iterator[Line]:
        work_id = f"{event.execution_id}:{name}"
        item = next((item for item in self._commit.work if item.work_id == work_id), None)
        if item is None:
            return
        tasks = self._plan.step(item.step).tasks if self._plan is not None and item.step in self._plan.net.index else ()
        due = datetime.fromtimestamp(item.available_at / 1000, UTC).isoformat() if item.available_at else None
        told = {"message_id": work_id, "tool_kind": tasks[0].kind if tasks else None, "priority": item.priority}
        yield self._line("task_enqueue", event, told | {"not_before": due}, item.step)

    def loop_ended(self, event: Event) -> Iterator[Line]:
        self._stats[event.step_run_id] = event.payload.get("stats")
        yield from ()

    def ended(self, event: Event) -> Iterator[Line]:
        ok, stats = event.event_type == "step.done", self._stats.get(event.step_run_id)
        if ok and (event.payload.get("result") is not None or stats is not None):
            collect = {"into": event.entity_id, "mode": "list"} if stats is not None else None
            yield self._line("result_integrate", event, {"as": event.entity_id, "collect": collect})
        counters = None
        if isinstance(stats, Mapping):
            settled = sum(stats.get(name, 0) for name in ("succeeded", "failed", "skipped"))
            counters = {**stats, "completed": settled}
        error = event.payload.get("error") or {}
        why = {"error_class": class_of(error), "error": error.get("message")} if error else {}
        done = {"done": True, "counters": counters, "duration_ms": event.duration_ms}
        yield self._line("step_done", event, {"ok": ok, **done, **why})

    def cancelled(self, event: Event) -> Iterator[Line]:
        told = {"cause": event.payload.get("cause"), "reason": event.payload.get("reason")}
        name, fields = self._line("execution_canceled", event, told)
        del fields["step_id"]
        yield name, fields


_Reader = Callable[[Reading, Event], Iterator[Line]]
_READERS: Final[Mapping[str, tuple[tuple[str, ...], _Reader]]] = {
    "next.evaluated": (("route_edge_selected", "when_eval_error", "step_called"), Reading.routed),
    "token.created": (("step_called",), Reading.called),
    "token.parked": (("step_parked",), Reading.parked),
    "policy.admit.evaluated": (("when_eval_error",), Reading.gated),
    "step.scheduled": (("step_dispatch", "sink_dispatch", "task_enqueue"), Reading.scheduled),
    "loop.started": (("step_dispatch", "sink_dispatch"), Reading.looped),
    **dict.fromkeys(WORK_EVENTS - {"step.scheduled"}, (("task_enqueue",), Reading.ranged)),
    "loop.done": (("step_done", "result_integrate"), Reading.loop_ended),
    "step.done": (("step_done", "result_integrate"), Reading.ended),
    "step.failed": (("step_done",), Reading.ended),
    "execution.cancelled": (("execution_canceled",), Reading.cancelled),
}


def _dead(letter: DeadLetter) -> Line:
    told: dict[str, Any] = {"message_id": letter.message_id, "attempt": letter.attempts}
    told |= {"error_class": letter.error.get("class") or letter.reason, "error": letter.last_error}
    told |= {"execution_id": letter.execution_id, "workflow_ref": letter.path, "step_id": letter.step_id}
    told |= {"call_id": letter.run_id, "loop_index": letter.loop_index, "loop_key": letter.loop_key}
    return "task_dlq", told | {"tool_kind": letter.tool_kind, "sink_id": letter.sink_id}


def _reclaimed(commit: Commit) -> Iterator[Line]:
    for message_id in commit.consumed:
        if message_id.startswith(_LEASE):
            work_id, _, epoch = message_id.removeprefix(_LEASE).rpartition(":")
            run_id = work_id.split(":")[1]
            told = {"message_id": work_id, "execution_id": commit.execution_id, "epoch": int(epoch)}
            path = commit.projection.get("path") or next((playbook_of(item.flow) for item in commit.work), None)
            told |= {"workflow_ref": path, "step_id": run_id.partition("#")[0]}
            yield "lease_reclaimed", told | {"call_id": run_id}
