"""Play a playbook with scripted outcomes on the real engine, without I/O or clock.

    played = play(text, {"fetch": {"rows": 3}, "store": [failed("timeout", "no answer"), ok()]})
    played.status, played.result, played.names()

An outcome is a plain result, an `Outcome`, a `Said`, a list of these (one per run or loop item), or a function of the
work. Tested in tests/unit/engine, which uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.playbook import Playbook
from noetl.engine.handlers.decide import Decision, NeedsLoad, decide
from noetl.engine.plan.plan import Plan, plan
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution, checksum
from noetl.model.events import Event
from noetl.model.manifest import combined, cut, manifest
from noetl.model.messages import AnyMessage, Ending, ItemEnd, Record, Report, Start, Suspension, TimerDue
from noetl.model.outcome import Outcome
from noetl.model.refs import expanded, is_manifest
from noetl.model.work import WorkItem

BEGIN = 1_800_000_000_000
MOST_REPORTS = 100_000


@dataclass(frozen=True)
class Said:
    """What a worker reports of a run or an item, besides its result."""

    result: Any = None
    error: Mapping[str, Any] | None = None
    writes: Mapping[str, Any] = field(default_factory=dict)
    suspend: Suspension | None = None
    skipped: bool = False
    took_ms: int = 0


class Hold:
    """A run or an item that is not reported: it stays with its worker."""


def read(text: str) -> Playbook:
    """Parse a playbook."""
    return normalize(parse(text, "playbook.yaml"))


def decided(plan: Plan, state: Execution, message: AnyMessage, at: int) -> Decision:
    """Decide a message that needs no stored results."""
    made = decide(plan, state, message, at)
    assert isinstance(made, Decision), f"it needs {made}"
    return made


class Script:
    """One execution with its work and timers, in virtual time."""

    def __init__(
        self,
        playbook: str | Playbook,
        outcomes: Mapping[str, Any] | None = None,
        *,
        payload: Mapping[str, Any] | None = None,
        execution_id: str = "900000000000000001",
        defaults: Mapping[str, Any] | None = None,
        parent: Mapping[str, Any] | None = None,
    ) -> None:
        self.plan: Plan = plan(read(playbook) if isinstance(playbook, str) else playbook, "hash", defaults)
        self.outcomes = dict(outcomes or {})
        self.payload = payload or {}
        self.parent = parent
        self.state = Execution(execution_id)
        self.events: list[Event] = []
        self.work: dict[str, WorkItem] = {}
        self.epochs: dict[str, int] = {}
        self.timers: dict[str, int] = {}
        self.sent: list[tuple[str, AnyMessage]] = []
        self.held: set[str] = set()
        self.calls: dict[str, int] = {}
        self.now = BEGIN
        self.stored: dict[str, Any] = {}  # large results by address
        self._messages = 0
        self._heard: set[str] = set()

    @property
    def status(self) -> str:
        return self.state.status

    @property
    def result(self) -> Any:
        return expanded(self.state.result)

    def message_id(self) -> str:
        self._messages += 1
        return f"m{self._messages}"

    def names(self, *types: str) -> list[str]:
        """Return the events as `type entity`, of all types or of these."""
        return [
            f"{event.event_type} {event.entity_id}".strip()
            for event in self.events
            if not types or event.event_type in types
        ]

    def of(self, event_type: str) -> list[Event]:
        """Return the events of a type."""
        return [event for event in self.events if event.event_type == event_type]

    def runs(self) -> list[str]:
        """Return the step-runs in the order they were scheduled."""
        return list(dict.fromkeys(str(event.step_run_id) for event in self.of("step.scheduled")))

    def tell(self, message: AnyMessage) -> Decision:
        """Decide a message and apply the decision as a store does."""
        decision = self._decided(message)
        self.events += decision.events
        for work_id, _ in decision.finished:
            self.work.pop(work_id, None)
        for work_id in decision.dropped:
            self.work.pop(work_id, None)
        for item in decision.work:
            self.work[item.work_id] = item
            self.epochs[item.work_id] = self.epochs.get(item.work_id, 0) + 1
        self.timers.update(decision.timers)
        for timer in decision.cleared:
            self.timers.pop(timer, None)
        self.sent += decision.inbox
        for execution_id, own in decision.inbox:
            if execution_id == self.state.execution_id and own.message_id not in self._heard:
                self._heard.add(own.message_id)
                self.tell(own)
        return decision

    def _decided(self, message: AnyMessage) -> Decision:
        resolved: dict[str, Any] = {}
        while isinstance(made := decide(self.plan, self.state, message, self.now, resolved), NeedsLoad):
            if made.touched:
                self.state = fold(self.state.execution_id, self.events)
            resolved |= {str(reference["ref"]): self._value(reference) for reference in made.loads}
            resolved |= {ref: self._put(ref, listed) for ref, listed in made.puts.items()}
        return made

    def _value(self, reference: Mapping[str, Any]) -> Any:
        if not is_manifest(reference):
            return self.stored[reference["ref"]]
        return combined(reference, [self.stored[part["ref"]] for part in reference["parts"]])

    def _put(self, ref: str, listed: Sequence[Any]) -> dict[str, Any]:
        self.stored[ref] = list(listed)
        parts = []
        for number, (count, data) in enumerate(cut(listed)):
            part = f"{ref}/part/{number}"
            parts.append({"ref": part, "count": count, "meta": {"bytes": len(data)}})
            self.stored[part] = msgspec.json.decode(data)
        return manifest(ref, parts)

    def start(self) -> Decision:
        path = self.plan.playbook.path
        return self.tell(Start(self.message_id(), path, self.plan.playbook_hash, self.payload, self.parent))

    def run(self, *, timers: bool = True) -> Script:
        """Work until nothing is left; advance time to the next timer when idle."""
        if self.state.phase == "pending":
            self.start()
        for _ in range(MOST_REPORTS):
            ready = [item for key, item in self.work.items() if key not in self.held]
            if ready:
                self.answer(ready[0])
            elif timers and self.timers:
                self.fire(min(self.timers, key=lambda timer: (self.timers[timer], timer)))
            else:
                return self
        raise AssertionError("the playbook does not come to an end")

    def fire(self, timer_id: str) -> Decision:
        """Advance time to a timer and deliver it."""
        self.now = max(self.now, self.timers.pop(timer_id, self.now))
        return self.tell(TimerDue(self.message_id(), timer_id))

    def answer(self, item: WorkItem) -> None:
        """Report a work item as scripted."""
        epoch = self.epochs[item.work_id]
        if item.chunk is not None:
            self._answer_chunk(item, epoch)
            return
        said = self._said(item, None)
        if isinstance(said, Hold):
            self.held.add(item.work_id)
            return
        self.now = max(self.now, item.available_at) + said.took_ms
        record = Record("task.done" if said.error is None else "task.failed", self.now, "task")
        ending = Ending("ok", said.result) if said.error is None else Ending("error", said.result, said.error)
        report = Report(
            self.message_id(),
            item.run_id,
            epoch,
            "w1",
            () if said.suspend else (record,),
            said.writes,
            suspension=said.suspend,
            ending=None if said.suspend else ending,
        )
        self.tell(report)

    def _answer_chunk(self, item: WorkItem, epoch: int) -> None:
        chunk = item.chunk
        if chunk is None:
            return
        for offset in range(chunk.size):
            index = chunk.start + offset
            if index in chunk.ended:
                continue
            said = self._said(item, index)
            if isinstance(said, Hold):
                self.held.add(item.work_id)
                continue
            self.now += said.took_ms
            status = "skipped" if said.skipped else "ok" if said.error is None else "error"
            ended = ItemEnd(index, status, said.result, said.error, said.writes)
            pause = msgspec.structs.replace(said.suspend, index=index) if said.suspend else None
            items = () if pause else (ended,)
            self.tell(
                Report(self.message_id(), item.run_id, epoch, "w1", items=items, chunk=chunk.chunk_id, suspension=pause)
            )
            if item.work_id not in self.work:
                return

    def _said(self, item: WorkItem, index: int | None) -> Said | Hold:
        key = item.step
        turn = self.calls.get(key, 0)
        self.calls[key] = turn + 1
        given = self.outcomes.get(key)
        if isinstance(given, list | tuple) and index is not None:
            given = given[index] if index < len(given) else None
        elif isinstance(given, list | tuple):
            given = given[min(turn, len(given) - 1)]
        if callable(given) and not isinstance(given, type):
            given = given(item) if index is None else given(item, index)
        return _said(given)

    def check(self) -> None:
        """Assert that the log, and its serialized copy, fold to the state."""
        assert checksum(fold(self.state.execution_id, self.events)) == checksum(self.state)
        stored = msgspec.msgpack.decode(msgspec.msgpack.encode(self.events), type=list[Event])
        assert checksum(fold(self.state.execution_id, stored)) == checksum(self.state)


def _said(given: Any) -> Said | Hold:
    if isinstance(given, Said | Hold):
        return given
    if isinstance(given, Outcome):
        error = msgspec.to_builtins(given.error) if given.error is not None else None
        return Said(given.result, error)
    return Said(given)


def play(
    playbook: str | Playbook,
    outcomes: Mapping[str, Any] | None = None,
    messages: Sequence[AnyMessage | Callable[[Script], None]] = (),
    **more: Any,
) -> Script:
    """Play a playbook to its end; messages arrive when nothing else is left to do."""
    script = Script(playbook, outcomes, **more).run(timers=not messages)
    for number, message in enumerate(messages):
        if callable(message):
            message(script)
        else:
            script.tell(message)
        script.run(timers=number == len(messages) - 1)
    script.check()
    return script
