"""The signals that a playbook names: in `wait` tasks, gates and other conditions.

Tested in tests/unit/engine/plan/test_signals.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.tree.playbook import Part, Playbook
from noetl.engine.plan.plan import template

_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_SEEN_AS_EVENT = ("event", "payload", "name")


def unknown_signal(playbook: Playbook, name: str) -> str | None:
    """Return a warning if nothing in the playbook waits for a signal."""
    named = set[str]()
    for task in (*(task for step in playbook.workflow for task in step.tasks), *playbook.workbook):
        if task.kind == "wait" and "signal" in task.fields:
            signal = task.fields["signal"].data
            if not isinstance(signal, str) or template(signal) is not None:
                return None
            named.add(signal)
    if name in named:
        return None
    for text in _texts((playbook.workflow, playbook.workbook)):
        compiled = template(text)
        for read in compiled.reads if compiled is not None else ():
            if read.path[:2] in (("ctx", "signals"), ("vars", "signals")):
                if len(read.path) == 2:
                    return None
                named.add(str(read.path[2]))
            elif read.path == _SEEN_AS_EVENT[: len(read.path)]:
                named.update(one or other for one, other in _QUOTED.findall(text))
    named.discard("signal.received")  # the name of the event
    if name in named:
        return None
    known = ", ".join(f"`{one}`" for one in sorted(named))
    waits = f"it names {known}" if named else "nothing in it waits for a signal"
    return f"Playbook `{playbook.path}` names no signal `{name}`; {waits}.{did_you_mean(name, named)}"


def _texts(part: Any) -> Iterator[str]:
    """Yield every text in a part of the tree."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, Part):
        for field in part.__struct_fields__:
            if not field.endswith("at"):  # where it is written
                yield from _texts(getattr(part, field))
    elif isinstance(part, Mapping | list | tuple):
        for value in part.values() if isinstance(part, Mapping) else part:
            yield from _texts(value)
