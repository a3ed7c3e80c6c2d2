"""Render templates of a request with the values of an execution.

`render_data` is a pure function: the API calls it in a process of its own. Tested in tests/server/api/test_rendering.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from noetl.engine.decision.scope import Scope, functions, render
from noetl.engine.state.execution import Execution
from noetl.engine.state.writes import plain
from noetl.expr import TemplateError, TemplateSyntaxError, compile_template, first_undefined


@dataclass(frozen=True, slots=True)
class Mistake:
    """Why a template has no value, and where it is in the data."""

    message: str
    where: str
    fix: str | None = None


async def visible(state: Execution, mask: Callable[[Any], Awaitable[bytes]]) -> Execution:
    """Return a copy of the part of a state that templates can read.

    It is masked: else a template would show a secret under another name.
    """
    part = Execution(
        state.execution_id, seq=state.seq, workload=state.workload, ctx=state.ctx, iter=state.iter, ended=state.ended
    )
    return msgspec.json.decode(await mask(part), type=Execution)


def render_data(data: Any, state: Execution, args: Mapping[str, Any], at: int, strict: bool) -> Any:
    """Return the data with every template rendered, or the Mistake in it."""
    mistake = _mistake(data, "$.template")
    if mistake is not None:
        return mistake
    try:
        value = render(data, Scope(state, args), functions(state, at))
        missing = first_undefined(value)
        if missing is not None and strict:
            missing.fail()
        return plain(value)
    except TemplateError as error:
        return Mistake(error.message, "$.template")


def render_each(data: Any, scopes: Sequence[Mapping[str, Any]], at: int) -> list[Any]:
    """Return the data rendered over each scope, or the Mistake in it."""
    return [render_data(data, Execution("0"), scope, at, True) for scope in scopes]


RENDER: Final = f"{__name__}:{render_data.__name__}"
RENDER_EACH: Final = f"{__name__}:{render_each.__name__}"


def _mistake(data: Any, where: str) -> Mistake | None:
    """Find the first syntax error; `render` would return such a template as text."""
    if isinstance(data, str):
        try:
            compile_template(data)
        except TemplateSyntaxError as error:
            return Mistake(error.message, where, error.fix)
        return None
    inner: Any = ()
    if isinstance(data, dict):
        inner = ((value, f"{where}.{key}") for key, value in data.items())
    elif isinstance(data, list):
        inner = ((value, f"{where}[{number}]") for number, value in enumerate(data))
    return next((found for value, place in inner if (found := _mistake(value, place)) is not None), None)
