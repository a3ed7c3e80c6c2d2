"""The pipeline of a step under change, and the tasks that write its result.

Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.conditions import negation, template
from noetl.dsl.dialects.lowering.draft import (
    Fields,
    NoEquivalentError,
    Record,
    items_of,
    plain_name,
    rewritten,
    value,
    word,
)
from noetl.dsl.dialects.lowering.lowerings import Lowering
from noetl.dsl.dialects.lowering.names import PREVIOUS, renamed
from noetl.dsl.dialects.lowering.tasks import lower_task, put_spec
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar

STORES: Final = frozenset(
    {"postgres", "duckdb", "ducklake", "snowflake", "http", "python", "artifact", "nats", "outbox"}
)
_TABLES: Final = frozenset({"postgres", "duckdb", "ducklake", "snowflake"})
_BIND: Final = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)|%")
_SQL: Final = ("command", "query", "commands", "script", "values", "args", "input")


class Pipeline:
    """The tasks of a step, in order; `main` gives the step's result."""

    def __init__(self, step: Fields, name: str) -> None:
        self.step = step
        self.name = name
        self.at: Node = step.key("tool") if "tool" in step else step.node
        self.tasks: list[tuple[Scalar, Fields]] = []
        self._is_single = False
        self._read(step.get("tool"))
        self._before = [(label.text, task.node) for label, task in self.tasks]
        self.sinks = self._sinks_at_the_end()

    def _read(self, tool: Node | None) -> None:
        if isinstance(tool, MapNode):
            labelled = _labelled(tool)
            if labelled is None:
                self._is_single = True
                self.tasks.append((word(f"{self.name}_task", self.at), Fields(tool)))
            else:
                self.tasks.append((labelled.key, Fields(_map(labelled.value))))
        elif isinstance(tool, ListNode):
            for index, item in enumerate(tool.items):
                if not isinstance(item, MapNode):
                    raise NoEquivalentError(item, "A task is a map.", "Write `- <label>: { kind: … }`.")
                labelled = _labelled(item)
                if labelled is not None:
                    self.tasks.append((labelled.key, Fields(_map(labelled.value))))
                else:
                    task = Fields(item)
                    named = task.get("name")
                    label = named if isinstance(named, Scalar) and plain_name(named) else word(f"task_{index}", item)
                    self.tasks.append((label, task))

    def _sinks_at_the_end(self) -> int:
        """Return how many tasks at the end of the pipeline only write."""
        count = 0
        for _, task in reversed(self.tasks):
            if not _only_writes(task):
                break
            count += 1
        return count

    @property
    def working(self) -> list[Fields]:
        """The tasks that do not only write."""
        return [task for _, task in self.tasks if not _only_writes(task)]

    @property
    def main(self) -> Fields:
        return self._main()[1]

    @property
    def main_label(self) -> str:
        return self._main()[0].text

    def require_result(self) -> None:
        """Raise NoEquivalentError where no task gives a result."""
        self._main()

    def _main(self) -> tuple[Scalar, Fields]:
        if not self.tasks:
            raise NoEquivalentError(
                self.at, "The step has no tool whose result could be used.", "Give the step a `tool`."
            )
        return self.tasks[-1 - self.sinks]

    def label(self, wanted: str, others: Iterable[str] = ()) -> str:
        """Return a label that no task has."""
        taken = {*(label.text for label, _ in self.tasks), *others}
        names = (wanted, *(f"{wanted}_{number}" for number in range(2, len(taken) + 3)))
        return next(name for name in names if name not in taken)

    def append(self, label: str, task: MapNode, at: Node) -> None:
        """Add a task that leaves the result of the step as it is."""
        fields = Fields(task)
        put_spec(fields, "sink", True, at)
        self.tasks.append((word(label, at), fields))
        self.sinks += 1

    def prepend(self, tasks: list[tuple[str, MapNode]], unless: str, at: Node) -> None:
        """Add tasks before the others, which leave the result; `unless` passes over them."""
        if unless:
            first = self.label("begun")
            tasks = [("choose", _choice(unless, first, at)), *tasks, (first, _noop([], at))]
        made: list[tuple[Scalar, Fields]] = []
        for wanted, task in tasks:
            fields = Fields(task)
            put_spec(fields, "sink", True, at)
            label = self.label(wanted, (one.text for one, _ in made))
            made.append((word(label, at), fields))
        self.tasks = [*made, *self.tasks]

    def write_back(self) -> None:
        """Put the tasks into the step, in the shortest form."""
        if [(label.text, task.built()) for label, task in self.tasks] == self._before:
            return
        if self._is_single and len(self.tasks) == 1:
            self.step.put("tool", self.tasks[0][1].built())
            return
        items = []
        for label, task in self.tasks:
            if "name" in task and plain_name(task.get("name")) == label.text:
                items.append(task.built())
            else:
                built = task.built()
                items.append(MapNode(built.start, built.end, (Entry(label, built),)))
        self.step.put("tool", ListNode(self.at.start, self.at.end, tuple(items)), self.at)


def _only_writes(task: Fields) -> bool:
    spec = task.get("spec")
    return isinstance(spec, MapNode) and plain_name(spec.get("sink")) == "true"


def _labelled(node: MapNode) -> Entry | None:
    if len(node.entries) == 1 and "kind" not in node and isinstance(node.entries[0].value, MapNode):
        return node.entries[0]
    return None


def _map(node: Node) -> MapNode:
    assert isinstance(node, MapNode)
    return node


def add_sinks(pipeline: Pipeline, written: Node, unless: str, record: Record, lowering: Lowering, key: Node) -> None:
    """Append the tasks that a `sink`, a `save` or `result.sink` stands for.

    With a condition, a task before them jumps over them where it does not hold.
    """
    tasks = [sink_task(item, record) for item in items_of(written)]
    if not tasks:
        raise NoEquivalentError(
            written, "A sink without a tool writes nothing.", "Name the tool: `sink: { tool: { kind: … } }`."
        )
    pipeline.require_result()
    record.note(lowering, key)
    last = pipeline.label("written")
    if unless:
        pipeline.append(pipeline.label("choose"), _choice(unless, last, key), key)
    for task in tasks:
        pipeline.append(pipeline.label("sink"), task, key)
    if unless:
        pipeline.append(last, _noop([], key), key)


def _choice(unless: str, last: str, at: Node) -> MapNode:
    """Return the task that jumps over those that write."""
    rules: list[dict[str, object]] = [
        {"when": template(unless), "then": {"do": "jump", "to": last}},
        {"else": {"then": {"do": "continue"}}},
    ]
    return _noop(rules, at)


def _noop(rules: list[dict[str, object]], at: Node) -> MapNode:
    data: dict[str, object] = {"kind": "noop"}
    made = value(data | ({"spec": {"policy": {"rules": rules}}} if rules else {}), at)
    return _map(made)


def sink_task(node: Node, record: Record, meant: dict[str, str] = PREVIOUS) -> MapNode:
    """Return the task that a sink stands for; it writes the result before it."""
    task = _sink_fields(node)
    _bind_statement(task)
    for old, new in (("data", "values"), ("statement", "command"), ("credential", "auth")):
        if old in task and new not in task:
            task.rename(old, new)
    _flatten_storage(task)
    if plain_name(task.get("kind")) in _TABLES and not any(name in task for name in _SQL):
        result = meant["result"]
        task.put("values", value(template(result), node), node)
    return _map(renamed(lower_task(task.built(), record), meant, record, by.NAMES))


def _bind_statement(task: Fields) -> None:
    """Write `:name` in a statement as `%(name)s`, and its values as `params`."""
    statement = task.get("statement")
    given = next((name for name in ("params", "args", "data", "values") if isinstance(task.get(name), MapNode)), None)
    if not isinstance(statement, Scalar) or given is None or "command" in task or "%(" in statement.text:
        return
    values = task.get(given)
    names = values.keys if isinstance(values, MapNode) else ()
    edits = [
        (match.start(), match.end(), f"%({match[1]})s" if match[1] else "%%")
        for match in _BIND.finditer(statement.text)
        if not match[1] or match[1] in names
    ]
    if not any(new != "%%" for _, _, new in edits):
        return
    task.put("statement", rewritten(statement, edits))
    if given != "params":
        task.rename(given, "params")


def _sink_fields(node: Node) -> Fields:
    if not isinstance(node, MapNode):
        raise NoEquivalentError(node, "A sink is a map with its tool.", "Write `sink: { tool: { kind: … } }`.")
    tool = node.get("tool")
    if isinstance(tool, MapNode):
        task = Fields(tool)
        for entry in node.entries:
            if entry.key.text not in ("tool", *task.entries):
                task.put(entry.key.text, entry.value, entry.key)
        return task
    if "kind" in node or "storage" in node:
        return Fields(node)
    fields = Fields(node)
    for old in ("tool", "type"):
        if old in fields:
            fields.rename(old, "kind")
            return fields
    if len(node.entries) == 1:
        [(key, only)] = node.entries
        if isinstance(only, MapNode) and key.text in STORES:
            inner = Fields(only)
            inner.put("kind", word(key.text, key), key)
            return inner
    raise NoEquivalentError(
        node, "A sink without a tool writes nothing.", "Name the tool: `sink: { tool: { kind: … } }`."
    )


def _flatten_storage(task: Fields) -> None:
    storage = task.get("storage")
    if storage is None or "kind" in task:
        return
    if isinstance(storage, MapNode):
        key, _ = task.pop("storage")
        inner = Fields(storage)
        if "type" in inner and "kind" not in inner:
            inner.rename("type", "kind")
        for name, entry in inner.entries.items():
            if name not in task:
                task.put(name, entry.value, entry.key)
        if "kind" not in task:
            raise NoEquivalentError(key, "`storage` names no tool.", "Write `storage: { kind: postgres }`.")
    else:
        task.rename("storage", "kind")


def unless_of(rest: str) -> str:
    """Return when a conditional sink is passed over."""
    return negation((rest,))
