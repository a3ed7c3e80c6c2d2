"""Render templates; no secrets. Tested in tests/server/api/test_rendering.py."""

from __future__ import annotations

from typing import Any

from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal
from noetl.server.processes.render import RENDER, Mistake, visible
from noetl.server.processes.side import OutOfMemory, TimedOut
from noetl.server.services import Services
from noetl.settings import CHECK_TIMEOUT
from noetl.wire.answers import RenderedValue
from noetl.wire.requests import Rendered

noun = Noun("context", "Render templates with the values of an execution.")


@noun.route(
    "POST",
    "/context/render",
    "viewer",
    example={"execution_id": "7123", "template": "{{ workload.name | upper }}", "strict": True},
    problems=(404, 422, 429),
    of="path",
)
async def rendered(call: Call, body: Rendered) -> RenderedValue:
    """Render a template, or data that holds templates."""
    services = call.services
    await call.find_execution(body.execution_id)
    give_back = services.renderings.take(call.actor)
    try:
        found = await _rendered(services, body)
    finally:
        give_back()
    if isinstance(found, Mistake):
        raise Refusal(422, "template", found.message, where=found.where, fix=found.fix)
    return RenderedValue(result=found)


async def _rendered(services: Services, body: Rendered) -> Any:
    """Return the value, or the mistake in the templates."""
    state = await visible(await services.reader.state(body.execution_id), services.mask.answer)
    order = (body.template, state, body.args, services.clock.now(), body.strict)
    seconds = services.bounds.check_s
    try:
        return await services.side.run(RENDER, *order, deadline_s=seconds)
    except TimedOut:
        return Mistake(
            f"Rendering takes more than {seconds:g} s of processor time.",
            "$.template",
            f"Render less at once, or raise {CHECK_TIMEOUT} of the server.",
        )
    except OutOfMemory:
        return Mistake("Rendering needs too much memory.", "$.template", "Render less at once.")
