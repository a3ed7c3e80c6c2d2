"""Render templates of triggers in a process of its own.

Tested in tests/server/api/test_webhooks.py and tests/conformance/test_ended_triggers.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.engine.state.execution import Execution
from noetl.model.errors import InvalidInput
from noetl.server.processes.render import RENDER, Mistake
from noetl.server.processes.side import OutOfMemory, SideProcesses, TimedOut


async def render_apart(side: SideProcesses, data: Any, scope: Mapping[str, Any], at: int, seconds: float) -> Any:
    """Return the data with its templates rendered over a scope. Raises InvalidInput."""
    try:
        found = await side.run(RENDER, data, Execution("0"), dict(scope), at, True, deadline_s=seconds)
    except TimedOut:
        raise InvalidInput(f"The templates take more than {seconds:g} s of processor time.") from None
    except OutOfMemory:
        raise InvalidInput("The templates need too much memory.") from None
    if isinstance(found, Mistake):
        raise InvalidInput(found.message)
    return found
