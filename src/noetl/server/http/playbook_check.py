"""Validate and pin a playbook, for the catalog and for a start by content.

Runs the checks of `noetl validate` in a few threads, so a long text does not block the event loop. Tested in
tests/server/api/test_catalog.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.uses import Unavailable
from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.pin import pinned
from noetl.dsl.validate import examine
from noetl.server.problems import Refusal
from noetl.server.services import Services
from noetl.wire.answers import Diagnosed


@dataclass(frozen=True, slots=True)
class Checked:
    """A playbook without errors."""

    path: str
    content: bytes
    canonical: bytes
    playbook: str
    diagnostics: list[Diagnosed]


async def check_playbook(services: Services, text: str) -> Checked:
    """Validate a text. Raises Refusal with all diagnostics if it has errors."""
    content = text.encode("utf-8", "surrogatepass")
    async with services.checking:
        diagnostics, pinned_tree = await asyncio.to_thread(_check, content, services.kinds, services.unavailable)
    if pinned_tree is None:
        raise _refusal(diagnostics, "The playbook has errors")
    path, canonical, playbook, required = pinned_tree
    missing = services.cannot_run(required)
    if missing:
        names = ", ".join(f"`{kind}`" for kind in missing)
        raise _refusal(
            diagnostics,
            f"The playbook requires tool kinds that this server cannot run (`executor.requires.tools`): {names}",
        )
    return Checked(path, content, canonical, playbook, diagnostics)


def _check(
    content: bytes, kinds: Kinds, unavailable: Unavailable
) -> tuple[list[Diagnosed], tuple[str, bytes, str, list[str]] | None]:
    document = parse(content, "playbook")
    found = examine(CheckContext(document, kinds, unavailable=unavailable))
    diagnostics = [_as_answer(one) for one in found]
    if any(one.severity == "error" for one in found):
        return diagnostics, None
    tree = normalize(document)
    canonical, playbook = pinned(tree)
    required = tree.executor.requires.data if tree.executor.requires is not None else {}
    tools = required.get("tools") if isinstance(required, dict) else None
    return diagnostics, (tree.path, canonical, playbook, list(map(str, tools)) if isinstance(tools, list) else [])


def _as_answer(found: Diagnostic) -> Diagnosed:
    return Diagnosed(
        code=found.code,
        severity=found.severity,
        message=found.message,
        fix=found.fix,
        path=found.path,
        line=found.line,
        column=found.column,
    )


def _refusal(diagnostics: list[Diagnosed], why: str) -> Refusal:
    errors = [one for one in diagnostics if one.severity == "error"]
    where = f"$.content, line {errors[0].line}" if errors else "$.content"
    return Refusal(
        422,
        "invalid-playbook",
        f"{why}. Nothing was stored or started.",
        where=where,
        fix=errors[0].fix if errors else None,
        errors=tuple(diagnostics),
    )
