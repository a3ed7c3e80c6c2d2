"""Coverage of arcs and rules. Tested in tests/unit/testing/test_cases.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from noetl.dsl.reading.nodes import Node, Source
from noetl.dsl.tree.playbook import Playbook
from noetl.model.events import Event
from noetl.testing.cases.player.player import PlayResult

Part = Literal["arc", "rule", "gate"]


class Branch(Struct, frozen=True):
    """An arc, or a rule of a task's policy or of a gate."""

    part: Part
    step: str
    task: str
    number: int

    def told(self, playbook: Playbook) -> str:
        """Describe the branch in the words of the playbook."""
        step = playbook.step(self.step)
        if self.part == "arc" and step is not None:
            return f"arc {self.step} → {step.arcs[self.number].step}"
        place = f"{self.step}.{self.task}" if self.part == "rule" else f"the gate of {self.step}"
        return f"rule {self.number + 1} of {place}"


class Covered:
    """Coverage of one playbook by all of its cases."""

    def __init__(self, playbook: Playbook, file: str, content: bytes) -> None:
        self.playbook = playbook
        self.file = file
        self.branches = dict(_branches(playbook))
        self.hits: dict[Branch, int] = dict.fromkeys(self.branches, 0)
        self._source = Source(file, content.decode("utf-8-sig", "replace").replace("\r\n", "\n"))
        self.is_quiet = any(
            step.loop is not None and any(task.rules for task in step.tasks) for step in playbook.workflow
        )

    def count(self, events: Iterable[Event]) -> None:
        for event in events:
            for branch in _taken(event):
                if branch in self.hits:
                    self.hits[branch] += 1

    @property
    def total(self) -> int:
        return len(self.hits)

    @property
    def hit(self) -> int:
        return sum(1 for number in self.hits.values() if number)

    def missed(self) -> Iterator[tuple[int, str]]:
        """Yield uncovered branches: line of the playbook, and description."""
        for branch, number in self.hits.items():
            if not number:
                node = self.branches[branch]
                yield (self._source.position(node.start).line if node is not None else 0), branch.told(self.playbook)


class Coverage:
    """Coverage of every playbook that has tests."""

    def __init__(self) -> None:
        self.playbooks: dict[str, Covered] = {}

    def know(self, playbook: Playbook, file: str, content: bytes) -> None:
        """Start counting for a playbook."""
        if playbook.path not in self.playbooks:
            self.playbooks[playbook.path] = Covered(playbook, file, content)

    def is_quiet(self, path: str) -> bool:
        """Whether loop items do not log all of their rules."""
        return self.playbooks[path].is_quiet

    def add(self, path: str, seen: PlayResult) -> None:
        """Count the branches of a play, including its child executions."""
        for name, events in [(path, seen.events), *seen.children]:
            if name in self.playbooks:
                self.playbooks[name].count(events)

    @property
    def percent(self) -> float:
        """Percentage of covered arcs and rules; 100 if there are none."""
        total = sum(one.total for one in self.playbooks.values())
        return 100.0 * sum(one.hit for one in self.playbooks.values()) / total if total else 100.0


def _branches(playbook: Playbook) -> Iterator[tuple[Branch, Node | None]]:
    ignored = _without_routing(playbook)
    for step in playbook.workflow:
        if step.name not in ignored:
            for number, arc in enumerate(step.arcs):
                yield Branch("arc", step.name, "", number), arc.at
        for number, rule in enumerate(step.admit or ()):
            yield Branch("gate", step.name, "", number), rule.at
        for task in step.tasks:
            for number, task_rule in enumerate(task.rules or ()):
                yield Branch("rule", step.name, task.label, number), task_rule.at


def _without_routing(playbook: Playbook) -> set[str]:
    """Return steps whose `next` is ignored: the final one, and compensations."""
    led_to = {arc.step for step in playbook.workflow for arc in step.arcs} | {playbook.entry}
    undoing = {step.compensate for step in playbook.workflow if step.compensate is not None} - led_to
    return {str(name) for name in (*undoing, playbook.executor.setting("final_step"))}


def _taken(event: Event) -> Iterator[Branch]:
    step = str(event.step_run_id or event.entity_id).partition("#")[0]
    if event.event_type == "next.evaluated":
        for number in event.payload.get("taken") or ():
            yield Branch("arc", step, "", int(number))
        return
    rule = event.payload.get("rule")
    if rule is None:
        return
    if event.event_type == "policy.task.evaluated":
        yield Branch("rule", step, event.entity_id, int(rule))
    elif event.event_type == "policy.admit.evaluated":
        yield Branch("gate", event.entity_id, "", int(rule))
