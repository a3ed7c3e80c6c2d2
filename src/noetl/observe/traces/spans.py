"""Spans of an execution, made of its events by one pure fold.

A server folds what it commits, `noetl trace` folds the log: both make the same spans with the same ids. Attributes name things
and show shapes; they hold no values of data. A successful loop item leaves one event, so its attempts have the times of its
range. Tested in tests/unit/observe/traces/test_spans.py and tests/observe/test_traces.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from noetl.engine.plan.plan import Plan
from noetl.model.events import Event
from noetl.model.ids import idempotency_key, run_key
from noetl.model.outcome import class_of
from noetl.model.refs import expanded
from noetl.observe.signatures import signature_of
from noetl.observe.task_facts import TaskFacts, run_by, task_facts, task_in
from noetl.trace_context import (
    TraceContext,
    attempt_span,
    dispatch_span,
    parse_traceparent,
    span_id_of,
    trace_id_of,
    trace_of,
)

MOST_SPANS: Final = 10_000  # of an execution; the rest is counted
MOST_ITEMS: Final = 1_000  # of a loop, whose attempts have spans
_OPENS: Final = ("step.scheduled", "dlq.replayed")
_LED: Final = ("jump", "break", "skip")  # what policies do that the log of an item does not show
Attributes = dict[str, str | int | float | bool]


class Span(Struct, frozen=True, omit_defaults=True):
    """One span; times are milliseconds since the epoch."""

    trace_id: str
    span_id: str
    parent_id: str  # empty: none
    name: str
    start: int
    end: int
    attributes: Mapping[str, Any] = {}
    error: str = ""  # empty: none
    links: tuple[str, ...] = ()  # W3C traceparents


class _Chunk(Struct):
    start: int  # index of the first item
    count: int
    began: int
    ended: int = 0
    worker: str = ""
    failed: int = 0


class _Task(Struct, frozen=True):
    kind: str
    began: int
    event: Event


class _Run(Struct):
    step: str
    began: int
    args: Mapping[str, Any] = {}
    worker: str = ""
    is_loop: bool = False
    chunks: dict[str, _Chunk] = field(default_factory=dict)  # with items that have not ended
    kinds: dict[str, str] = field(default_factory=dict)  # task key → kind
    retried: dict[str, int] = field(default_factory=dict)  # task key → last attempt that has its span
    sinks: list[tuple[str, Span]] = field(default_factory=list)  # label → span, until the rows are known
    led: set[int] = field(default_factory=set)  # items whose policies changed the flow
    items: int = 0


class TraceFold:
    """Makes spans of the events of one execution, in order.

    `outer` is the context that its parent gives, where the log has none.
    """

    def __init__(
        self, execution_id: str, plan: Plan | None, settings: Mapping[str, Any] | None = None, outer: str = ""
    ) -> None:
        self.execution_id = execution_id
        self.seq = 0
        self.sampled = False
        self.has_ended = False
        self.path = ""
        self.children: dict[str, str] = {}  # child → context that it is started in
        self._plan = plan
        self._settings = settings
        self._given = outer
        self._parent = ""
        self._trace_id = trace_id_of(execution_id)
        self._root_id = span_id_of(execution_id)
        self._began = self._at = 0
        self._workload: Mapping[str, Any] = {}
        self._size = 0
        self._runs: dict[str, _Run] = {}
        self._gates: dict[str, list[Span]] = {}  # step → spans of gates, until the run is known
        self._facts: dict[tuple[str, str], TaskFacts] = {}
        self._count = self._dropped = 0

    @property
    def context(self) -> TraceContext:
        """The trace, with its root span."""
        return TraceContext(self._trace_id, self._root_id, self.sampled)

    def add(self, event: Event) -> list[Span]:
        """Return the spans that an event completes."""
        self.seq, self._at = event.seq, event.timestamp
        reader = _READERS.get(event.event_type)
        return [] if reader is None else list(self._bounded(reader(self, event)))

    def open(self, at: int) -> list[Span]:
        """Return the spans that have not ended, as if they ended now."""
        found = [span for name in [*self._runs] for span in self._close(name, at, "", {"open": True})]
        return [*found, *([] if self.has_ended else [self._root(at, "", {"open": True})])]

    def _bounded(self, spans: Iterator[Span]) -> Iterator[Span]:
        for span in spans:
            self._count += 1
            if self._count <= MOST_SPANS or span.name == "server.execution":
                yield span
            else:
                self._dropped += 1

    def _span(
        self, span_id: str, parent: str, name: str, start: int, end: int, about: Mapping[str, Any], error: str = ""
    ) -> Span:
        shown = {"execution_id": self.execution_id, **about}
        if None in (found := shown.values()) or "" in found:
            shown = {key: value for key, value in shown.items() if value is not None and value != ""}
        return Span(self._trace_id, span_id, parent, name, min(start, end), end, shown, error)

    # The execution

    def _requested(self, event: Event) -> Iterator[Span]:
        self._began, self.path = event.payload.get("begun_at", event.timestamp), str(event.payload.get("path", ""))
        self._given = str(event.payload.get("trace", "")) or self._given
        self._name()
        yield from ()

    def _evaluated(self, event: Event) -> Iterator[Span]:
        self._workload = event.payload.get("workload") or {}
        self._size = len(msgspec.json.encode(self._workload))
        self._name()
        yield from ()

    def _name(self) -> None:
        outer = parse_traceparent(self._given) if self._given else None
        found = trace_of(self.execution_id, self._given, self._workload, self._settings or {})
        if found is not None:
            self._trace_id, self.sampled = found.trace_id, found.sampled
        self._parent = "" if outer is None or outer.is_made_up else outer.span_id

    def _finished(self, event: Event) -> Iterator[Span]:
        status = str(event.status or event.payload.get("status", ""))
        for name in [*self._runs]:
            yield from self._close(name, event.timestamp, "the execution ended before", {})
        error = event.payload.get("error") or {}
        failed, self.has_ended = status not in ("completed", "partial"), True
        about = {"status": status} | ({"error_class": class_of(error)} if error else {})
        yield self._root(event.timestamp, _text(error) or (status if failed else ""), about)

    def _root(self, at: int, error: str, about: Mapping[str, Any]) -> Span:
        told = {"workflow_ref": self.path, "workload_size": self._size, **about}
        told |= {"spans_dropped": self._dropped} if self._dropped else {}
        return self._span(self._root_id, self._parent, "server.execution", self._began, at, told, error)

    # Steps

    def _scheduled(self, event: Event) -> Iterator[Span]:
        name, step = str(event.step_run_id), event.entity_id
        if name not in self._runs:
            self._runs[name] = _Run(step, event.timestamp, event.payload.get("args") or {})
        for gate in self._gates.pop(step, ()):
            yield msgspec.structs.replace(gate, parent_id=dispatch_span(self.execution_id, name))

    def _started(self, event: Event) -> Iterator[Span]:
        run = self._runs.get(str(event.step_run_id))
        if run is not None:
            run.worker = str(event.payload.get("worker", ""))
        yield from ()

    def _gated(self, event: Event) -> Iterator[Span]:
        payload, step = event.payload, event.entity_id
        rules = [] if self._plan is None or step not in self._plan.net.index else self._plan.step(step).admit or ()
        texts = [str(rule.when.data) for rule in rules if rule.when is not None]
        outcome = "error" if payload.get("errors") else "true" if payload.get("allow") else "false"
        told = {"step_id": step, "when_expr": "; ".join(texts), "outcome": outcome}
        error = "; ".join(map(str, payload.get("errors") or ()))
        gate = self._span(
            span_id_of(event.event_id),
            self._root_id,
            "server.when_eval",
            event.timestamp,
            event.timestamp,
            told,
            error,
        )
        if payload.get("allow"):
            self._gates.setdefault(step, []).append(gate)
        else:
            yield gate

    def _routed(self, event: Event) -> Iterator[Span]:
        taken = event.payload.get("taken", ())
        for arc in event.payload.get("arcs", ()):
            if arc.get("arc") in taken:
                told = {"from_step": event.entity_id, "edge_index": arc["arc"], "target_step": arc.get("step")}
                told |= {"condition": arc.get("when")}
                name = span_id_of(event.event_id, arc["arc"])
                yield self._span(name, self._root_id, "server.route", event.timestamp, event.timestamp, told)

    def _ended(self, event: Event) -> Iterator[Span]:
        name, error = str(event.step_run_id), event.payload.get("error") or {}
        about: dict[str, Any] = {"ok": not error} | ({"error_class": class_of(error)} if error else {})
        yield from self._close(name, event.timestamp, _text(error), about, event.payload.get("result"))

    def _close(self, name: str, at: int, error: str, about: Mapping[str, Any], result: Any = None) -> Iterator[Span]:
        """Yield the spans of a run that ended: its sinks, its ranges, itself."""
        run = self._runs.pop(name, None)
        if run is None:
            return
        for label, sink in run.sinks:
            rows = _rows(expanded(result), label)
            yield (
                sink
                if rows is None
                else msgspec.structs.replace(sink, attributes={**sink.attributes, "rows_written": rows})
            )
        for chunk, piece in run.chunks.items():
            yield self._chunk_span(name, run, chunk, piece, at)
        told = {
            "step_id": run.step,
            "call_id": name,
            "tool_kind": self._kind(run.step),
            "worker_id": run.worker,
            **about,
        }
        parent = self._root_id
        yield self._span(dispatch_span(self.execution_id, name), parent, "server.dispatch", run.began, at, told, error)

    def _kind(self, step: str) -> str:
        tasks = self._plan.step(step).tasks if self._plan is not None and step in self._plan.net.index else ()
        return tasks[0].kind if tasks else ""

    # Loops

    def _ranged(self, event: Event) -> Iterator[Span]:
        run, payload = self._runs.get(str(event.step_run_id)), event.payload
        if run is not None:
            run.is_loop = True
            piece = _Chunk(payload.get("start", 0), payload.get("count", 0), event.timestamp)
            run.chunks[str(payload.get("chunk"))] = piece
        yield from ()

    def _range_started(self, event: Event) -> Iterator[Span]:
        run = self._runs.get(str(event.step_run_id))
        piece = None if run is None else run.chunks.get(str(event.payload.get("chunk")))
        if piece is not None:
            piece.worker = str(event.payload.get("worker", ""))
        yield from ()

    def _item_ended(self, event: Event) -> Iterator[Span]:
        name, index, payload = str(event.step_run_id), event.iteration, event.payload
        run, chunk = self._runs.get(name), str(payload.get("chunk"))
        if run is None or index is None:
            return
        piece = run.chunks.get(chunk)
        run.items += 1
        if index in run.led:
            run.led.discard(index)
        elif run.items <= MOST_ITEMS:
            yield from self._item_spans(event, name, run, piece)
        if piece is not None:
            piece.ended += 1
            piece.failed += event.event_type == "loop.iteration.failed"
            if piece.ended >= piece.count:
                del run.chunks[chunk]
                yield self._chunk_span(name, run, chunk, piece, event.timestamp)

    def _item_spans(self, event: Event, name: str, run: _Run, piece: _Chunk | None) -> Iterator[Span]:
        """Yield the attempts of an item that have no events: each succeeded at once."""
        error, plan = event.payload.get("error"), self._plan
        if plan is None or run.step not in plan.net.index or (error is not None and "task" not in error):
            return
        step, number = plan.step(run.step), int(name.rpartition("#")[2] or 1)
        if plan.setting("durability", step) == "task":
            return  # each task has events
        began = event.timestamp if piece is None else piece.began
        key = event.payload.get("key")
        root = run_key(self.execution_id, run.step, number, event.iteration if key is None else str(key))
        for task in step.tasks:
            if error is not None and task.label == str(error["task"]).partition("/")[0]:
                return
            whole, label, inner = idempotency_key(root, task.label), task.label, run_by(plan, task)
            if inner is not task:
                whole, label = idempotency_key(whole, inner.label), f"{task.label}/{inner.label}"
            if whole not in run.retried:
                yield from self._attempt_spans(name, run, event, label, whole, inner.kind, 1, began, {"ok": True})

    def _chunk_span(self, name: str, run: _Run, chunk: str, piece: _Chunk, at: int) -> Span:
        told: dict[str, Any] = {"step_id": run.step, "call_id": name, "tool_kind": self._kind(run.step)}
        told |= {
            "worker_id": piece.worker,
            "loop_index": piece.start,
            "loop_count": piece.count,
            "loop_failed": piece.failed,
        }
        span_id, parent = dispatch_span(self.execution_id, name, chunk), dispatch_span(self.execution_id, name)
        error = f"{piece.failed} of {piece.count} items failed" if piece.failed else ""
        return self._span(span_id, parent, "server.dispatch", piece.began, at, told, error)

    # Tasks

    def _task_started(self, event: Event) -> Iterator[Span]:
        run = self._runs.get(str(event.step_run_id))
        if run is not None:
            run.kinds[str(event.task_run_id)] = str(event.payload.get("kind", ""))
        yield from ()

    def _task_ended(self, event: Event) -> Iterator[Span]:
        run, key, attempt = self._runs.get(str(event.step_run_id)), str(event.task_run_id), event.attempt or 1
        if run is None:
            return
        if event.event_type in ("task.done", "task.failed") and run.retried.get(key) == attempt:
            return  # the event of the attempt came before
        run.retried[key] = attempt
        began = event.payload.get("started_at", event.timestamp)
        kind = run.kinds.get(key) or self._fact(run.step, event.entity_id).kind
        error = event.payload.get("error") or {}
        about: dict[str, Any] = {"ok": not error} | ({"error_class": class_of(error)} if error else {})
        name = str(event.step_run_id)
        yield from self._attempt_spans(name, run, event, event.entity_id, key, kind, attempt, began, about)

    def _attempt_spans(
        self, name: str, run: _Run, event: Event, label: str, key: str, kind: str, attempt: int, began: int,
        about: Mapping[str, Any],
    ) -> Iterator[Span]:  # fmt: skip
        """Yield the span of an attempt, and that of its sink."""
        facts, index = self._fact(run.step, label), event.iteration
        error, remote = _text(event.payload.get("error") or {}), event.payload.get("remote")
        error = "" if about.get("ok") else error
        parent = self._parent_of(name, run, event)
        told = {"step_id": run.step, "call_id": name, "task": label, "tool_kind": kind, "attempt": attempt, **about}
        told |= {"loop_index": index, "worker_id": self._worker_of(run, event)}
        more = {"spec_signature": facts.signature, "args_signature": self._args(run, label)}
        span_id = attempt_span(name, key, attempt)
        made = self._span(span_id, parent, f"worker.plugin.{kind}", began, event.timestamp, told | more, error)
        yield made if remote is None else msgspec.structs.replace(made, links=(str(remote),))
        if facts.sink is None:
            return
        told |= {"sink_id": facts.sink, "sink_type": kind, "table": facts.table, "mode": facts.mode}
        sink_id = span_id_of(span_id, "sink")
        sink = self._span(sink_id, parent, f"worker.sink.{facts.sink}", began, event.timestamp, told, error)
        if index is None:
            run.sinks.append((label, sink))
        else:
            yield sink

    def _parent_of(self, name: str, run: _Run, event: Event) -> str:
        chunk = self._chunk_of(run, event)
        return dispatch_span(self.execution_id, name, chunk)

    def _worker_of(self, run: _Run, event: Event) -> str:
        chunk = self._chunk_of(run, event)
        return run.worker if chunk is None or chunk not in run.chunks else run.chunks[chunk].worker

    def _chunk_of(self, run: _Run, event: Event) -> str | None:
        """Return the range that an event of an item belongs to."""
        if event.iteration is None:
            return None
        if "chunk" in event.payload:
            return str(event.payload["chunk"])
        for name, piece in reversed(run.chunks.items()):
            if piece.start <= event.iteration < piece.start + piece.count:
                return name
        return None

    def _judged(self, event: Event) -> Iterator[Span]:
        run = self._runs.get(str(event.step_run_id))
        if run is not None and event.iteration is not None and event.payload.get("do") in _LED:
            run.led.add(event.iteration)
        yield from ()

    def _args(self, run: _Run, label: str) -> str:
        task = None if self._plan is None else task_in(self._plan, run.step, label)
        given = {} if task is None else {name: value.data for name, value in task.input.items()}
        return signature_of({**run.args, **given}) if run.args or given else ""

    def _fact(self, step: str, label: str) -> TaskFacts:
        known = self._facts.get((step, label))
        if known is None:
            task = None if self._plan is None else task_in(self._plan, step, label)
            known = self._facts[step, label] = TaskFacts("") if task is None else task_facts(task)
        return known

    def _child(self, event: Event) -> Iterator[Span]:
        context = TraceContext(self._trace_id, dispatch_span(self.execution_id, str(event.step_run_id)), self.sampled)
        self.children[str(event.payload.get("child_id", event.entity_id))] = str(context)
        yield from ()


_Reader = Callable[[TraceFold, Event], Iterator[Span]]
_READERS: Final[Mapping[str, _Reader]] = {
    "playbook.execution.requested": TraceFold._requested,
    "playbook.request.evaluated": TraceFold._evaluated,
    "playbook.finished": TraceFold._finished,
    **dict.fromkeys(_OPENS, TraceFold._scheduled),
    "step.started": TraceFold._started,
    **dict.fromkeys(
        ("step.done", "step.failed", "step.repaired", "loop.item.repaired", "dlq.returned"), TraceFold._ended
    ),
    "policy.admit.evaluated": TraceFold._gated,
    "next.evaluated": TraceFold._routed,
    **dict.fromkeys(("loop.iteration.scheduled", "loop.claim.scheduled"), TraceFold._ranged),
    "loop.iteration.started": TraceFold._range_started,
    **dict.fromkeys(("loop.iteration.done", "loop.iteration.failed"), TraceFold._item_ended),
    "task.started": TraceFold._task_started,
    **dict.fromkeys(("task.done", "task.failed", "task.attempt.done", "task.attempt.failed"), TraceFold._task_ended),
    "policy.task.evaluated": TraceFold._judged,
    "child.started": TraceFold._child,
}


def spans_of(fold: TraceFold, events: Iterable[Event]) -> list[Span]:
    """Return the spans of a log; those that have not ended last until its last event."""
    found, last = [], 0
    for event in events:
        found += fold.add(event)
        last = event.timestamp
    return [*found, *fold.open(last)]


def _text(error: Mapping[str, Any]) -> str:
    return f"{class_of(error)}: {error.get('message', '')}" if error else ""


def _rows(result: Any, label: str) -> int | None:
    """Return how many rows a task wrote, as the result of its step says."""
    own = result.get(label) if isinstance(result, Mapping) else None
    for found in (own, result):
        count = found.get("row_count") if isinstance(found, Mapping) else None
        if isinstance(count, int):
            return count
    return None
