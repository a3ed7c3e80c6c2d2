"""The log of an execution, a page at a time.

Following it is in `sse`. Tested in tests/server/test_api_executions.py.
"""

from __future__ import annotations

from noetl.server.endpoint import Call, Noun
from noetl.wire.answers import Events
from noetl.wire.requests import EventsQuery

noun = Noun("events", "What happened.")


@noun.route("GET", "/api/executions/{execution_id}/events", "viewer", problems=(400, 404))
async def events(call: Call, execution_id: str, query: EventsQuery) -> Events:
    """Give the events of an execution, filtered by type and step."""
    return await call.services.reader.events(execution_id, query)
