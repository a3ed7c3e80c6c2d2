"""Render templates of triggers in a process of its own.

Tested in tests/server/api/triggers/test_webhooks.py and tests/conformance/test_ended_triggers.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noetl.engine.state.execution import Execution
from noetl.model.errors import InvalidInput
from noetl.server.processes.render import RENDER, RENDER_EACH, Mistake
from noetl.server.processes.side import OutOfMemory, SideProcesses, TimedOut


async def render_apart(side: SideProcesses, data: Any, scope: Mapping[str, Any], at: int, seconds: float) -> Any:
    """Return the data with its templates rendered over a scope. Raises InvalidInput."""
    found = await _run(side, seconds, RENDER, data, Execution("0"), dict(scope), at, True)
    if isinstance(found, Mistake):
        raise InvalidInput(found.message)
    return found


async def render_each_apart(
    side: SideProcesses, data: Any, scopes: Sequence[Mapping[str, Any]], at: int, seconds: float
) -> list[Any]:
    """Return the data rendered over each scope; an InvalidInput for one that fails."""
    found = await _run(side, seconds, RENDER_EACH, data, [dict(scope) for scope in scopes], at)
    return [InvalidInput(one.message) if isinstance(one, Mistake) else one for one in found]


async def _run(side: SideProcesses, seconds: float, *parts: Any) -> Any:
    try:
        return await side.run(*parts, deadline_s=seconds)
    except TimedOut:
        raise InvalidInput(f"The templates take more than {seconds:g} s of processor time.") from None
    except OutOfMemory:
        raise InvalidInput("The templates need too much memory.") from None
