"""Events of an execution. Tested in tests/server/api/test_executions.py."""

from __future__ import annotations

from noetl.server.http.endpoint import Call, Noun
from noetl.wire.answers import Events
from noetl.wire.requests import EventsQuery

noun = Noun("events", "The event log of an execution.")


@noun.route("GET", "/api/executions/{execution_id}/events", "viewer", problems=(400, 404), of="execution")
async def events(call: Call, execution_id: str, query: EventsQuery) -> Events:
    """List the events of an execution, filtered by type, step, run, item and text."""
    return await call.services.reader.events(execution_id, query, call.services.mask.events)
