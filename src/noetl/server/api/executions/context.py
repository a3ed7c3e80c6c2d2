"""Render templates; no secrets. Tested in tests/server/api/test_rendering.py."""

from __future__ import annotations

from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal
from noetl.server.processes.render import RENDER, Mistake, visible
from noetl.server.processes.side import OutOfMemory, TimedOut
from noetl.settings import CHECK_TIMEOUT
from noetl.wire.answers import RenderedValue
from noetl.wire.requests import Rendered

noun = Noun("context", "Render templates with the values of an execution.")


@noun.route(
    "POST",
    "/context/render",
    "viewer",
    example={"execution_id": "7123", "template": "{{ workload.name | upper }}", "strict": True},
    problems=(404, 422),
)
async def rendered(call: Call, body: Rendered) -> RenderedValue:
    """Render a template, or data that holds templates."""
    services = call.services
    state = visible(await services.reader.state(body.execution_id))
    order = (body.template, state, body.args, services.clock.now(), body.strict)
    seconds = services.bounds.check_s
    try:
        found = await services.side.run(RENDER, *order, deadline_s=seconds)
    except TimedOut:
        found = Mistake(
            f"Rendering takes longer than {seconds:g} s.",
            "$.template",
            f"Render less at once, or raise {CHECK_TIMEOUT} of the server.",
        )
    except OutOfMemory:
        found = Mistake("Rendering needs too much memory.", "$.template", "Render less at once.")
    if isinstance(found, Mistake):
        raise Refusal(422, "template", found.message, where=found.where, fix=found.fix)
    return RenderedValue(result=found)
