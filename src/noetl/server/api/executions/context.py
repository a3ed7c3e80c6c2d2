"""Render templates; no secrets. Tested in tests/server/api/test_executions.py."""

from __future__ import annotations

from typing import Any

from noetl.engine.decision.scope import Scope, functions, render
from noetl.engine.state.writes import plain
from noetl.expr import TemplateError, TemplateSyntaxError, compile_template, first_undefined
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal
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
    _check(body.template, "$.template")
    state = await call.services.reader.state(body.execution_id)
    try:
        value = render(body.template, Scope(state, body.args), functions(state, call.services.clock.now()))
        missing = first_undefined(value)
        if missing is not None and body.strict:
            missing.fail()
    except TemplateError as error:
        raise Refusal(422, "template", error.message, where="$.template") from None
    return RenderedValue(result=plain(value))


def _check(data: Any, where: str) -> None:
    """Refuse templates with a syntax error, which `render` would return as text."""
    if isinstance(data, str):
        try:
            compile_template(data)
        except TemplateSyntaxError as error:
            raise Refusal(422, "template", error.message, where=where, fix=error.fix) from None
    elif isinstance(data, dict):
        for key, value in data.items():
            _check(value, f"{where}.{key}")
    elif isinstance(data, list):
        for number, value in enumerate(data):
            _check(value, f"{where}[{number}]")
