"""Check names in a test file. Tested in tests/unit/testing/test_case_files.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar, plain
from noetl.dsl.tree.playbook import Playbook
from noetl.model.events import CANONICAL, EVENT_TYPES
from noetl.testing.cases.files.problems import FileProblem, at, unknown
from noetl.testing.cases.files.read import TestFile, texts

_ROUTES: Final = ("route", "visits", "avoids", "failed", "compensations")


class Names(Struct, frozen=True):
    """Names that a test file may use."""

    main: Playbook
    playbooks: Sequence[Playbook]  # the main one and those it calls
    kinds: Kinds

    def tasks(self) -> list[str]:
        """Return every way to name a task of the main playbook, and steps of the others."""
        found = [step.name for step in self.main.workflow]
        found += [f"{step.name}.{task.label}" for step in self.main.workflow for task in step.tasks]
        return found + [f"{one.name}:{step.name}" for one in self.playbooks[1:] for step in one.workflow]

    def has_task(self, key: str) -> bool:
        """Whether a key names a task: `step`, `step.task` or `playbook:step`."""
        playbook, _, place = key.rpartition(":")
        step, _, label = place.partition(".")
        for one in self.playbooks:
            if playbook and playbook not in (one.path, one.name):
                continue
            found = one.step(step)
            if found is not None and (not label or self._has_label(one, step, label)):
                return True
        return False

    def _has_label(self, playbook: Playbook, name: str, label: str) -> bool:
        step = playbook.step(name)
        own = [task.label for task in step.tasks] if step else []
        own += [f"{name}_claim"] if step is not None and step.loop is not None and step.loop.cursor else []
        return label in own or any(label.endswith(task.label) for task in playbook.workbook)


def name_troubles(tests: TestFile, names: Names) -> Iterator[FileProblem]:
    """Yield every unknown name."""
    source, root = tests.source, tests.root
    maps = [root, *(one for one in _items(root.get("tests")) if isinstance(one, MapNode))]
    for node in maps:
        for part in ("mocks", "effects"):
            yield from _tasks(tests, names, node.get(part))
        for kind in texts(node.get("real")):
            if kind.text not in names.kinds:
                yield unknown(source, kind, "tool kind", kind.text, names.kinds)
        expect = node.get("expect")
        if isinstance(expect, MapNode):
            yield from _expected(tests, names, expect)
    saga = root.get("saga")
    if isinstance(saga, MapNode):
        known = [step.name for one in names.playbooks for step in one.workflow]
        for step in (*texts(saga.get("only")), *texts(saga.get("except"))):
            if step.text not in known:
                yield unknown(source, step, "step", step.text, known)


def _expected(tests: TestFile, names: Names, expect: MapNode) -> Iterator[FileProblem]:
    steps = [step.name for step in names.main.workflow]
    for part in _ROUTES:
        for step in texts(expect.get(part)):
            if step.text.partition("#")[0] not in steps:
                yield unknown(tests.source, step, "step", step.text, steps)
    yield from _tasks(tests, names, expect.get("calls"))
    events = expect.get("events")
    told: list[Node | None] = []
    if isinstance(events, MapNode):
        told = [entry.key for entry in events]
    elif isinstance(events, ListNode):
        told = [one.get("type") if isinstance(one, MapNode) else one for one in events]
    for node in told:
        name = plain(node)
        if isinstance(node, Scalar) and isinstance(name, str) and CANONICAL.get(name, name) not in EVENT_TYPES:
            yield unknown(tests.source, node, "event type", name, EVENT_TYPES)


def _tasks(tests: TestFile, names: Names, node: Node | None) -> Iterator[FileProblem]:
    for entry in node.entries if isinstance(node, MapNode) else ():
        if not names.has_task(entry.key.text):
            yield unknown(tests.source, entry.key, "step or task", entry.key.text, names.tasks())
        items = entry.value.get("items") if isinstance(entry.value, MapNode) else None
        if isinstance(items, MapNode):
            yield from _items_of(tests, names, entry.key.text, items)


def _items_of(tests: TestFile, names: Names, key: str, items: MapNode) -> Iterator[FileProblem]:
    """Check that a mock's step is a loop; only claimed rows have keys, not indexes."""
    place = key.rpartition(":")[2].partition(".")[0]
    loops = [step.loop for one in names.playbooks for step in one.workflow if step.name == place]
    if not any(loops):
        yield at(
            tests.source, items, f"The step `{place}` has no loop, so it has no items.", "Write the outcome itself."
        )
    elif all(loop is None or loop.cursor is None for loop in loops):
        for entry in items:
            if entry.key.text != "else" and not entry.key.text.isdigit():
                said = f"`{entry.key.text}` is not an item index."
                yield at(tests.source, entry.key, said, "Write a number from 0, or `else`.")


def _items(node: Node | None) -> Iterator[Node]:
    yield from node.items if isinstance(node, ListNode) else ()
