"""The iteration that a task runs in, and what a child playbook gets of it.

Tested in tests/unit/dsl/dialects/test_lowering.py and tests/dialects/test_dialects.py.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.draft import Fields, NoEquivalentError, Record, is_null, value
from noetl.dsl.reading.nodes import MapNode, Scalar


class Iteration(Struct, frozen=True):
    """An iterator: its name, the name of its element, and where its index is."""

    name: str
    item: str
    index: str
    around: Iteration | None = None

    @property
    def items(self) -> tuple[str, ...]:
        """The names of the elements, those of the iterators around it first."""
        return (*(self.around.items if self.around else ()), self.item)

    @property
    def names(self) -> dict[str, str]:
        """What the names of `_loop` are today."""
        whole = (
            f"{{'loop_id': execution_id ~ ':{self.name}', 'current_index': {self.index}, "
            f"'current_item': iter.{self.item}}}"
        )
        return {
            "_loop": whole,
            "_loop.loop_id": f"(execution_id ~ ':{self.name}')",
            "_loop.current_index": self.index,
            "_loop.current_item": f"iter.{self.item}",
        }


def give_child(task: Fields, over: Iteration, record: Record, key: Scalar) -> None:
    """Pass the workload, the elements and `_loop` to a child playbook."""
    record.note(by.ITERATOR_CHILD, key)
    field = next((one for one in ("input", "args", "payload") if one in task), "input")
    given = task.get(field)
    workload = record.root.get("workload")
    inputs: dict[str, Any] = {}
    if isinstance(workload, MapNode):
        inputs |= {
            entry.key.text: "{{ workload." + entry.key.text + " }}"
            for entry in workload
            if entry.key.text.isidentifier()
        }
    inputs |= {item: "{{ iter." + item + " }}" for item in over.items}
    inputs["_loop"] = {
        "loop_id": "{{ execution_id ~ ':" + over.name + "' }}",
        "current_index": "{{ " + over.index + " }}",
        "current_item": "{{ iter." + over.item + " }}",
    }
    made = Fields(MapNode(key.start, key.end, ()))
    for each, data in inputs.items():
        made.put(each, value(data, key), key)
    if isinstance(given, MapNode):
        for entry in given.entries:
            made.add(entry)
    elif not is_null(given):
        raise NoEquivalentError(key, "The inputs of a child playbook are a map.", "Write `with: { <name>: … }`.")
    task.put(field, made.built(), key)
