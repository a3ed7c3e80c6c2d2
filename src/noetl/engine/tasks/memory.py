"""The memory of a pipeline: place, counters, results, pending writes.

Stored results are remembered by reference; another worker that continues the pipeline loads them again. Tested in tests/unit/engine/pipeline/test_laws.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from noetl.dsl.tree.playbook import Task, default_label
from noetl.engine.tasks.actions import Suspend
from noetl.engine.tasks.sinks import is_aside
from noetl.model.manifest import combined
from noetl.model.refs import compact_pipeline, compacted, expanded

Load = Callable[[Mapping[str, Any]], Any]
_PLAIN: Final = (
    "counter", "phase", "attempt", "transitions", "began", "first_began", "until", "limit_ms", "deadline",
)  # fmt: skip
_MAPS: Final = ("visits", "iter", "step", "writes")


class Held(Struct, frozen=True):
    """The result of a task, and the form in which it is kept if that is another."""

    value: Any
    stored: Mapping[str, Any] | None = None  # its reference, or the compact result of a child
    pages: Mapping[str, Any] | None = None  # the manifest of its pages

    @property
    def kept(self) -> Any:
        """The compact value, its reference, or the manifest of pages with a stored one."""
        if self.pages is not None and any("ref" in part for part in self.pages["parts"]):
            return self.pages
        return compacted(self.value) if self.stored is None else self.stored

    def as_data(self) -> dict[str, Any]:
        if self.pages is not None:
            return {"stored": dict(self.pages), "pages": True}
        return {"value": self.kept} if self.stored is None else {"stored": dict(self.stored)}

    @staticmethod
    def of(data: Mapping[str, Any], load: Load | None) -> Held:
        stored = data.get("stored")
        if stored is None:
            return Held(expanded(data["value"]))
        if data.get("pages"):
            inline = [part["value"] for part in stored["parts"] if "value" in part]
            whole = len(inline) == len(stored["parts"])
            value = combined(stored, inline) if whole else load(stored) if load is not None else stored
            return Held(value, pages=stored)
        return Held(load(stored) if load is not None else expanded(stored), stored)


class Memory(Struct):
    """The state of a pipeline."""

    counter: int = 0
    phase: str = "ready"  # ready, running, waiting, settling, delayed, ended
    attempt: int = 0
    transitions: int = 0
    began: int = 0  # start of the attempt
    first_began: int = 0  # start of the visit
    until: int = 0  # end of a delay
    limit_ms: float = 0  # time-out of the whole call, waits included
    deadline: int = 0  # when that time-out ends
    visits: dict[str, int] = {}
    iter: dict[str, Any] = {}
    step: dict[str, Any] = {}
    writes: dict[str, Any] = {}
    prev: Held | None = None
    results: dict[str, Held] = {}
    waiting: Suspend | None = None

    def move_to(self, counter: int) -> None:
        self.counter = counter

    def count_transition(self) -> int:
        self.transitions += 1
        return self.transitions

    def count_visit(self, label: str) -> int:
        """Count a visit of a task, whose first attempt follows."""
        self.visits[label] = visit = self.visits.get(label, 0) + 1
        return visit

    def count_attempt(self, at: int) -> int:
        """Count an attempt: the first of a visit, or a retry."""
        if self.phase == "ready":
            self.attempt, self.first_began = 1, at
        else:
            self.attempt += 1
        return self.attempt

    def run(self, at: int) -> None:
        self.phase, self.began, self.waiting = "running", at, None

    def wait(self, waiting: Suspend) -> None:
        self.phase, self.waiting = "waiting", waiting

    def settle(self) -> None:
        self.phase, self.waiting = "settling", None

    def delay(self, until: int) -> None:
        self.phase, self.until = "delayed", until

    def proceed(self) -> None:
        self.phase = "ready"

    def end(self) -> None:
        self.phase = "ended"

    def keep(self, label: str, held: Held, *, is_prev: bool) -> None:
        """Keep the result of a task, as `_prev` too if it succeeded."""
        self.results[label] = held
        if is_prev:
            self.prev = held

    def write(self, key: str, value: Any) -> None:
        """Keep a write to `ctx`; writes are applied in order."""
        self.writes.pop(key, None)
        self.writes[key] = value

    def as_data(self) -> dict[str, Any]:
        """Return the memory as plain data, without empty fields."""
        data: dict[str, Any] = {name: getattr(self, name) for name in _PLAIN if getattr(self, name)}
        data |= {name: dict(getattr(self, name)) for name in _MAPS if getattr(self, name)}
        if self.results:
            data["results"] = {label: held.as_data() for label, held in self.results.items()}
        if self.prev is not None:
            label = next((label for label, held in self.results.items() if held is self.prev), None)
            data["prev"] = {"label": label} if label is not None else self.prev.as_data()
        if self.waiting is not None:
            data["waiting"] = msgspec.to_builtins(self.waiting)
        return data

    @staticmethod
    def of(data: Mapping[str, Any], load: Load | None = None) -> Memory:
        """Decode the memory of a snapshot."""
        memory = Memory(**{name: data[name] for name in _PLAIN if name in data})
        for name in _MAPS:
            setattr(memory, name, dict(data.get(name, {})))
        memory.results = {label: Held.of(held, load) for label, held in data.get("results", {}).items()}
        prev = data.get("prev")
        if prev is not None:
            memory.prev = memory.results[prev["label"]] if "label" in prev else Held.of(prev, load)
        if "waiting" in data:
            memory.waiting = msgspec.convert(data["waiting"], Suspend)
        return memory


def settled_result(step: str, tasks: tuple[Task, ...], memory: Memory) -> Any:
    """Return the result of a pipeline: each label's, and which one's keys it has."""
    prev = memory.prev
    own = prev.kept if prev is not None else None
    giving = [task.label for task in tasks if not is_aside(task)]
    if len(giving) == 1 and (not isinstance(own, Mapping) or giving[0] == default_label(step)):
        return own
    last = next((label for label, held in memory.results.items() if held is prev), None)
    return compact_pipeline({label: held.kept for label, held in memory.results.items()}, last, own)


def stored_in(snapshot: Any) -> list[Mapping[str, Any]]:
    """Return the references of stored results in a snapshot."""
    references: list[Mapping[str, Any]] = []
    waiting = [snapshot]
    while waiting:
        data = waiting.pop()
        if isinstance(data, Mapping):
            stored = data.get("stored")
            if isinstance(stored, Mapping):
                references.append(stored)
            else:
                waiting.extend(data.values())
        elif isinstance(data, list | tuple):
            waiting.extend(data)
    return references
