"""Send the message that `explain` recommends, and check that it moves something."""

from __future__ import annotations

from collections.abc import Sequence

from noetl.engine.queries.explain import Standing
from noetl.engine.state.execution import Execution
from noetl.model.messages import AnyMessage, PatchCtx, Signal, Unpause


def advice(message_id: str, state: Execution, found: Sequence[Standing]) -> tuple[AnyMessage, list[Standing]] | None:
    """Return a message that must move one of these standings, or None."""
    assert found, "an execution that has not ended has nothing in it"
    if state.paused:
        assert any("unpause" in standing.moved_by for standing in found), found
        return Unpause(message_id), [standing for standing in found if "unpause" in standing.moved_by]
    for standing in found:
        if standing.moved_by.startswith(f"`noetl signal {state.execution_id} "):
            name = standing.moved_by.split()[3]
            return Signal(message_id, name, 1), [other for other in found if other.moved_by == standing.moved_by]
    for standing in found:
        if standing.moved_by.startswith("a signal"):
            return Signal(message_id, "go", 1), [standing]
        paths = [path.removeprefix("ctx.") for path in standing.read or {} if path.startswith("ctx.")]
        if paths:
            return PatchCtx(message_id, dict.fromkeys(paths, True)), [standing]
    return None  # gates over unfinished steps: no message from outside opens them


def has_moved(standing: Standing, before: Execution, after: Execution) -> bool:
    if standing.what == "token":
        return standing.name not in after.tokens
    name, _, item = standing.name.partition("[")
    then, now = before.runs[name], after.runs.get(name)
    if now is None:
        return True
    if not item:
        return now.suspended is None or then.suspended is None or now.suspended.seq != then.suspended.seq
    index = int(item.removesuffix("]"))
    if now.loop is None or then.loop is None or index not in now.loop.suspended:
        return True
    return now.loop.suspended[index].seq != then.loop.suspended[index].seq
