"""Make a cassette from the logs of an execution and its children.

A log has every error, and the last result of each task of a pipeline. Results that it does not have (of repeated visits,
or of a pipeline that failed later) are listed in `notes`. Secrets were masked by value before they reached the log, and
are masked by name here. Tested in tests/unit/testing/test_cassette.py.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from noetl.dsl.secret_names import is_secret_name
from noetl.dsl.tree.playbook import Playbook, Step, default_label
from noetl.engine.tasks.waits import SUSPENDING
from noetl.masking.values import MASK
from noetl.model.events import Event
from noetl.model.refs import expanded, is_ref
from noetl.testing.cases.cassettes.cassette import VERSION
from noetl.worker.secrets.redact import Secrets

Load = Callable[[Mapping[str, Any]], Awaitable[Any]]
_ENDS: Final = ("task.attempt.failed", "task.failed", "task.attempt.done", "task.done")
_HTTP: Final = re.compile(r"HTTP_(\d{3})")
_NOT_CALLED: Final = (*SUSPENDING, "workbook")
_TEXTS: Final = Secrets()


class Log(Struct, frozen=True):
    """Log of one execution, and its playbook."""

    playbook: Playbook
    events: Sequence[Event]


class Recorded(Struct):
    """What was read from the logs."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    visits: dict[str, list[str]] = field(default_factory=dict)  # idempotency keys of each call

    def entry(self, call: str, key: str) -> dict[str, Any]:
        """Add an entry; later visits of the same task, even in a child, are numbered."""
        keys = self.visits.setdefault(call, [])
        if key not in keys:
            keys.append(key)
        visit = keys.index(key) + 1
        made: dict[str, Any] = {"call": call} | ({"visit": visit} if visit > 1 else {})
        self.calls.append(made)
        return made


async def cassette(main: Log, children: Sequence[Log], load: Load) -> dict[str, Any]:
    """Build a cassette as plain data; `load` returns the values of stored results."""
    found = Recorded()
    _Reading(main, found, messages=True).read()
    for child in children:
        _Reading(child, found).read()
    accepted = next((one for one in main.events if one.event_type == "playbook.request.evaluated"), None)
    ended = next((one for one in reversed(main.events) if one.event_type == "playbook.finished"), None)
    data = {
        "cassette": VERSION,
        "playbook": main.playbook.path,
        "execution": main.events[0].execution_id if main.events else None,
        "status": ended.status if ended is not None else None,
        "notes": list(dict.fromkeys(found.notes)),
        "workload": dict((accepted.payload if accepted is not None else {}).get("workload") or {}),
        "messages": found.messages,
        "calls": found.calls,
    }
    made: dict[str, Any] = masked(await _loaded(data, load))
    return {name: value for name, value in made.items() if value not in (None, [], {})}


class _Reading:
    def __init__(self, log: Log, found: Recorded, *, messages: bool = False) -> None:
        self._log = log
        self._found = found
        self._messages = messages
        self._seen: set[tuple[str | None, int | None]] = set()
        # Calls whose results are still to come.
        self._open: dict[tuple[str, int | None], list[tuple[str, dict[str, Any]]]] = {}

    def read(self) -> None:
        for step in self._log.playbook.workflow:
            if step.loop is not None and step.loop.cursor is not None:
                said = f"the rows claimed by `{step.name}` are not recorded: mock it and `{step.name}_claim`"
                self._found.notes.append(said)
        for event in self._log.events:
            if event.event_type in _ENDS:
                self._call(event)
            elif event.event_type in ("step.done", "loop.iteration.done"):
                self._result(event)
            elif event.event_type in ("step.failed", "loop.iteration.failed"):
                self._lost(event)
            elif self._messages:
                self._message(event)

    def _step(self, event: Event) -> Step | None:
        return self._log.playbook.step(str(event.step_run_id).partition("#")[0])

    def _name(self, step: Step, label: str, index: int | None) -> str:
        item = "" if index is None else f"[{index}]"
        return f"{self._log.playbook.path}:{step.name}.{label}{item}"

    def _call(self, event: Event) -> None:
        step = self._step(event)
        key = (event.task_run_id, event.attempt)
        label = event.entity_id
        kind = next((task.kind for task in step.tasks if task.label == label), "") if step is not None else ""
        if step is None or key in self._seen or kind in _NOT_CALLED:
            return
        self._seen.add(key)
        entry = self._found.entry(self._name(step, label, event.iteration), str(event.task_run_id))
        error = event.payload.get("error")
        if error is not None:
            entry["error"] = dict(error)
            status = _HTTP.fullmatch(str(error.get("code", "")))
            entry |= {"http": {"status": int(status[1])}} if status else {}
        else:
            entry["ok"] = None
            self._open.setdefault((str(event.step_run_id), event.iteration), []).append((label, entry))
        entry["takes"] = round((event.duration_ms or 0.0) / 1000, 3)

    def _result(self, event: Event) -> None:
        step = self._step(event)
        waiting = self._open.pop((str(event.step_run_id), event.iteration), [])
        if step is None or (step.loop is not None and event.event_type == "step.done"):
            return
        results = results_of(step, expanded(event.payload.get("result")))
        told = {label for label, _ in waiting}
        if event.iteration is not None:  # of a successful item, the log has only its end
            for task in step.tasks:
                if task.label not in told and task.kind not in _NOT_CALLED and task.label in results:
                    key = f"{event.execution_id}:{event.step_run_id}:{event.iteration}"
                    entry = self._found.entry(self._name(step, task.label, event.iteration), key)
                    waiting.append((task.label, entry))
        for number, (label, entry) in enumerate(waiting):
            entry["ok"] = results.get(label)
            if any(label == later for later, _ in waiting[number + 1 :]):
                self._found.notes.append(
                    f"`{entry['call']}` was visited more than once: only its last result is recorded"
                )
            result: Any = entry["ok"]
            status = result.get("status_code") if isinstance(result, Mapping) else None
            if isinstance(status, int):
                entry["http"] = {"status": status}

    def _lost(self, event: Event) -> None:
        for _, entry in self._open.pop((str(event.step_run_id), event.iteration), []):
            self._found.notes.append(
                f"the result of `{entry['call']}` is not recorded: a later task of its step failed"
            )

    def _message(self, event: Event) -> None:
        at = round((event.timestamp - self._log.events[0].timestamp) / 1000, 3)
        if event.event_type == "signal.received":
            payload = event.payload
            self._found.messages.append({"at": at, "signal": event.entity_id, "data": payload.get("data")})
        elif event.event_type == "ctx.patched" and event.payload.get("by") == "operator":
            self._found.messages.append({"at": at, "patch": dict(event.payload.get("writes") or {})})
        elif event.event_type == "execution.cancelled" and event.source != "server":
            self._found.messages.append({"at": at, "cancel": str(event.payload.get("reason") or "")})


def results_of(step: Step, result: Any) -> dict[str, Any]:
    """Return the results of the tasks of a step-run or item, by label."""
    labels = [task.label for task in step.tasks]
    alone = len(labels) == 1
    if alone and (labels[0] == default_label(step.name) or not isinstance(result, Mapping)):
        return {labels[0]: result}
    results = result.get("results") if isinstance(result, Mapping) else None
    if isinstance(results, Mapping) and any(label in results for label in labels):
        return {label: results[label] for label in labels if label in results}
    return {label: result[label] for label in labels if label in result} if isinstance(result, Mapping) else {}


async def _loaded(value: Any, load: Load) -> Any:
    if is_ref(value):
        return await _loaded(await load(value), load)
    if isinstance(value, Mapping):
        return {key: await _loaded(item, load) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [await _loaded(item, load) for item in value]
    return value


def masked(value: Any) -> Any:
    """Mask values under the name of a secret, in maps and strings."""
    if isinstance(value, str):
        return _TEXTS.text(value)
    if isinstance(value, Mapping):
        return {key: MASK if _is_secret(key, item) else masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return value


def _is_secret(key: str, value: Any) -> bool:
    return is_secret_name(str(key)) and isinstance(value, str | int) and not isinstance(value, bool) and value != ""
