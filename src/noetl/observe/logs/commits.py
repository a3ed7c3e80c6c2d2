"""Log events of a server, derived from what it has committed.

So the log lines and the event log cannot disagree, and a level that is off costs nothing. Tested in
tests/observe/test_logs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from noetl.dsl.tree.playbook import Step
from noetl.engine.decision.work import WORK_EVENTS
from noetl.engine.plan.plan import Plan
from noetl.model.commit import Commit
from noetl.model.events import Event
from noetl.model.letters import DeadLetter
from noetl.model.outcome import class_of
from noetl.model.work import playbook_of
from noetl.observe.logs.lines import SERVER_EVENTS
from noetl.observe.logs.table import ALL, Line
from noetl.observe.task_facts import TaskFacts, run_by, task_facts

PlanOf = Callable[[str], Plan | None]  # content hash → plan, if it is in memory
_MOST: Final = 10_000  # cached steps
_LEASE: Final = "lease:"  # begins the messages of leases that expired
_BESIDE_EVENTS: Final = {"task_dlq", "lease_reclaimed"}  # what other parts of commits say


class CommitLog:
    """Logs the events of commits; `is_on` is false if no level of them is."""

    def __init__(self, plan_of: PlanOf) -> None:
        self._plan_of = plan_of
        names = {one.name for one in ALL if one.source == "server" and SERVER_EVENTS.is_on(one.level)}
        self._readers = {kind: reader for kind, (made, reader) in _READERS.items() if names & set(made)}
        self._names = frozenset(names)
        self._sinks: dict[tuple[str, str], tuple[TaskFacts, ...]] = {}  # of steps of playbooks
        self._only_errors = names <= {"when_eval_error"} | _BESIDE_EVENTS  # of what events say
        self.is_on = bool(names)

    def committed(self, commits: Sequence[Commit]) -> None:
        """Log the events of commits."""
        lines: list[Line] = []
        for commit in commits:
            self._read(commit, lines)
            if commit.letters:
                lines += (_dead(change.letter) for change in commit.letters if change.letter is not None)
            if commit.consumed and (commit.work or commit.events):
                lines += _reclaimed(commit)
        lines = [line for line in lines if line.event in self._names]
        if lines:
            SERVER_EVENTS.log(lines)

    def _read(self, commit: Commit, lines: list[Line]) -> None:
        readers, reading = self._readers, None
        for event in commit.events:
            reader = readers.get(event.event_type)
            if reader is not None and not (self._only_errors and _is_right(event)):
                reading = reading or self._reading(commit, lines)
                reader(reading, event)

    def _reading(self, commit: Commit, lines: list[Line]) -> Reading:
        if len(self._sinks) > _MOST:
            self._sinks.clear()
        return Reading(commit, self._plan_of, self._names, self._sinks, lines)


class Reading:
    """The log events of one commit, added to `lines`."""

    def __init__(
        self,
        commit: Commit,
        plan_of: PlanOf,
        names: frozenset[str],
        sinks: dict[tuple[str, str], tuple[TaskFacts, ...]],
        lines: list[Line],
    ) -> None:
        self._commit = commit
        self._plan_of = plan_of
        self._workflow = commit.projection.get("path")
        self._names = names  # of the events that are logged
        self._sinks = sinks  # cache
        self._lines = lines
        self._edges: dict[tuple[str | None, str], int] = {}  # (run, target) → index of the arc that was taken
        self._stats: dict[str | None, Any] = {}  # of loops that ended

    def _log(self, name: str, event: Event, step: str | None = None, **own: Any) -> None:
        fields: dict[str, Any] = {
            "execution_id": event.execution_id,
            "workflow_ref": self._workflow,
            "step_id": step or event.entity_id,
            "call_id": event.step_run_id,
            "loop_index": event.iteration,
            **own,
        }
        self._lines.append(Line(event=name, **fields))

    @cached_property
    def _plan(self) -> Plan | None:
        return self._plan_of(str(self._commit.projection.get("playbook", "")))

    def _step(self, name: str | None) -> Step | None:
        """Return a step of the plan, if the plan is in memory."""
        plan = self._plan
        return None if plan is None or name not in plan.net.index else plan.step(name)

    def routed(self, event: Event) -> None:
        taken = event.payload.get("taken", ())
        for arc in event.payload.get("arcs", ()):
            index, target = arc.get("arc"), str(arc.get("step", ""))
            if arc.get("error"):
                self._log("when_eval_error", event, action="skip", edge_index=index, error=str(arc["error"]))
            if index in taken and "step_called" in self._names:
                self._edges[event.step_run_id, target] = index
                way: dict[str, Any] = {"from_step": event.entity_id, "edge_index": index, "target_step": target}
                self._log("route_edge_selected", event, condition=arc.get("when"), **way)

    def called(self, event: Event) -> None:
        cause, step = event.payload.get("event") or {}, str(event.payload.get("step", ""))
        before = cause.get("step")
        reason = f"predecessor:{before}" if before else str(cause.get("name", ""))
        edge = self._edges.get((event.step_run_id, step))
        self._log("step_called", event, step, reason=reason, edge_index=edge, call_id=None)  # the run comes later

    def parked(self, event: Event) -> None:
        name = str(event.payload.get("step", ""))
        step = self._step(name)
        texts = [str(rule.when.data) for rule in (step and step.admit) or () if rule.when is not None]
        self._log("step_parked", event, name, when_expr="; ".join(texts) or None, when_result=False)

    def gated(self, event: Event) -> None:
        if event.payload.get("errors"):
            action = "park" if self._parks(event) else "fail"
            self._log("when_eval_error", event, action=action, error="; ".join(event.payload["errors"]))

    def _parks(self, event: Event) -> bool:
        return not any(
            other.event_type == "step.scheduled" and other.entity_id == event.entity_id for other in self._commit.events
        )

    def scheduled(self, event: Event) -> None:
        step = self._step(event.entity_id)
        if step is None or step.loop is None:
            self._dispatched(event, step, None)
            self._queued(event, event.step_run_id)

    def looped(self, event: Event) -> None:
        total = None if event.payload.get("cursor") else event.payload.get("total")
        loop_plan = {"total": total, "mode": event.payload.get("mode")}
        self._dispatched(event, self._step(event.entity_id), loop_plan)

    def _dispatched(self, event: Event, step: Step | None, loop_plan: Mapping[str, Any] | None) -> None:
        self._log("step_dispatch", event, loop_plan=loop_plan)
        if step is not None:
            for facts in self._sinks_of(step):
                self._log("sink_dispatch", event, sink_id=facts.sink, sink_type=facts.kind)

    def _sinks_of(self, step: Step) -> tuple[TaskFacts, ...]:
        assert self._plan is not None
        place = (self._plan.playbook_hash, step.name)
        found = self._sinks.get(place)
        if found is None:
            every = (task_facts(run_by(self._plan, task)) for task in step.tasks)
            found = self._sinks[place] = tuple(facts for facts in every if facts.sink is not None)
        return found

    def ranged(self, event: Event) -> None:
        self._queued(event, f"{event.step_run_id}:{event.payload.get('chunk')}")

    def _queued(self, event: Event, name: str | None) -> None:
        work_id = f"{event.execution_id}:{name}"
        item = next((item for item in self._commit.work if item.work_id == work_id), None)
        if item is not None:
            step = self._step(item.step)
            kind = step.tasks[0].kind if step is not None and step.tasks else None
            due = datetime.fromtimestamp(item.available_at / 1000, UTC).isoformat() if item.available_at else None
            told: dict[str, Any] = {"message_id": work_id, "priority": item.priority, "not_before": due}
            self._log("task_enqueue", event, item.step, tool_kind=kind, **told)

    def loop_ended(self, event: Event) -> None:
        self._stats[event.step_run_id] = event.payload.get("stats")

    def ended(self, event: Event) -> None:
        ok, stats = event.event_type == "step.done", self._stats.get(event.step_run_id)
        if ok and (event.payload.get("result") is not None or stats is not None):
            collect = {"into": event.entity_id, "mode": "list"} if stats is not None else None
            self._log("result_integrate", event, as_=event.entity_id, collect=collect)
        counters = None
        if isinstance(stats, Mapping):
            settled = sum(stats.get(name, 0) for name in ("succeeded", "failed", "skipped"))
            counters = {**stats, "completed": settled}
        error = event.payload.get("error")
        why = {"error_class": class_of(error), "error": error.get("message")} if error else {}
        self._log("step_done", event, ok=ok, done=True, counters=counters, duration_ms=event.duration_ms, **why)

    def cancelled(self, event: Event) -> None:
        cause, reason = event.payload.get("cause"), event.payload.get("reason")
        self._log("execution_canceled", event, cause=cause, reason=reason, step_id=None)


_Reader = Callable[[Reading, Event], None]
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


def _is_right(event: Event) -> bool:
    """Return whether no condition of an event failed."""
    payload = event.payload
    return not payload.get("errors") and not any("error" in arc for arc in payload.get("arcs", ()))


def _dead(letter: DeadLetter) -> Line:
    return Line(
        event="task_dlq",
        message_id=letter.message_id,
        execution_id=letter.execution_id,
        workflow_ref=letter.path,
        step_id=letter.step_id,
        call_id=letter.run_id,
        loop_index=letter.loop_index,
        loop_key=letter.loop_key,
        tool_kind=letter.tool_kind,
        sink_id=letter.sink_id,
        attempt=letter.attempts,
        error_class=letter.error.get("class") or letter.reason,
        error=letter.last_error,
    )


def _reclaimed(commit: Commit) -> Iterator[Line]:
    for message_id in commit.consumed:
        if message_id.startswith(_LEASE):
            work_id, _, epoch = message_id.removeprefix(_LEASE).rpartition(":")
            run_id = work_id.split(":")[1]
            yield Line(
                event="lease_reclaimed",
                message_id=work_id,
                epoch=int(epoch),
                execution_id=commit.execution_id,
                workflow_ref=commit.projection.get("path")
                or next((playbook_of(item.flow) for item in commit.work), None),
                step_id=run_id.partition("#")[0],
                call_id=run_id,
            )
