"""Editor features over HTTP, for a text that is not registered.

Stateless: a request has the whole text, and no file or execution is read. Tested in tests/server/api/test_language.py.
"""

from __future__ import annotations

from typing import Any

from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.playbook_check import run_check
from noetl.server.problems import Refusal
from noetl.server.processes.language import Feature, Refused
from noetl.wire.language import (
    CompletionList,
    Definitions,
    Formatted,
    Hovered,
    PlaceAsked,
    RenameAsked,
    Renamed,
    TextAsked,
    TextChecked,
)

_TEXT = "workflow:\n  - step: hello\n    tool: {kind: noop}\n"
_TYPED = _TEXT.replace("noop", "no")
_PROBLEMS = (413, 422, 429, 503)
noun = Noun("language", "Diagnostics, completion and other editor features over a playbook's text.")


@noun.route(
    "POST",
    "/api/language/check",
    "viewer",
    example={"content": _TEXT},
    problems=_PROBLEMS,
    is_plain=True,
    of="path",
)
async def check(call: Call, body: TextAsked) -> TextChecked:
    """Check a text: diagnostics with quick fixes, outline and graph."""
    found: TextChecked = await _ask(call, "check", body)
    return found


@noun.route(
    "POST",
    "/api/language/complete",
    "viewer",
    example={"content": _TYPED, "offset": _TYPED.index("}")},
    problems=_PROBLEMS,
    is_plain=True,
    of="path",
)
async def complete(call: Call, body: PlaceAsked) -> CompletionList:
    """List what can be written at a place."""
    found: CompletionList = await _ask(call, "complete", body, body.offset)
    return found


@noun.route(
    "POST",
    "/api/language/hover",
    "viewer",
    example={"content": _TEXT, "offset": _TEXT.index("noop")},
    problems=_PROBLEMS,
    is_plain=True,
    of="path",
)
async def hover(call: Call, body: PlaceAsked) -> Hovered:
    """Describe what is at a place."""
    found: Hovered = await _ask(call, "hover", body, body.offset)
    return found


@noun.route(
    "POST",
    "/api/language/definition",
    "viewer",
    example={"content": _TEXT, "offset": _TEXT.index("hello")},
    problems=_PROBLEMS,
    is_plain=True,
    of="path",
)
async def definition(call: Call, body: PlaceAsked) -> Definitions:
    """Find the definition and all mentions of what is at a place."""
    found: Definitions = await _ask(call, "definition", body, body.offset)
    return found


@noun.route(
    "POST",
    "/api/language/rename",
    "viewer",
    example={"content": _TEXT, "offset": _TEXT.index("hello"), "name": "greet"},
    problems=_PROBLEMS,
    is_plain=True,
    of="path",
)
async def rename(call: Call, body: RenameAsked) -> Renamed:
    """Rename a step, task or iterator everywhere it is named."""
    found: Renamed | Refused = await _ask(call, "rename", body, body.offset, body.name)
    if isinstance(found, Refused):
        raise Refusal(422, "refused-rename", found.why, where="$.name", fix="Choose another name, or another place.")
    return found


@noun.route(
    "POST",
    "/api/language/format",
    "viewer",
    example={"content": _TEXT},
    problems=_PROBLEMS,
    is_plain=True,
    of="path",
)
async def format_text(call: Call, body: TextAsked) -> Formatted:
    """Format a text like `noetl fmt`."""
    found: Formatted = await _ask(call, "format", body)
    return found


async def _ask(call: Call, feature: Feature, body: TextAsked, *more: Any) -> Any:
    services = call.services
    give_back = services.readings.take(call.actor)
    try:
        return await run_check(services, services.language, feature, body.content, *more)
    finally:
        give_back()
