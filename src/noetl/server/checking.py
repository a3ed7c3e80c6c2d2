"""Checks the text of a playbook and pins it, for the catalog and for a start by content.

The checks are those of `noetl validate`. They run beside the event loop, a few at a time: a long text holds up nobody.
Tested in tests/server/test_api_catalog.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.kinds import Kinds
from noetl.dsl.normalize import normalize
from noetl.dsl.parse import parse
from noetl.dsl.pin import pinned
from noetl.dsl.subject import Subject
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


async def checked(services: Services, text: str) -> Checked:
    """Check a text. Raises Refusal with every diagnostic where it has errors."""
    content = text.encode("utf-8", "surrogatepass")
    async with services.checking:
        found, made = await asyncio.to_thread(_check, content, services.kinds)
    if made is None:
        raise _refused(found, "the playbook has errors")
    path, canonical, playbook, wanted = made
    missing = services.cannot_run(wanted)
    if missing:
        said = ", ".join(f"`{kind}`" for kind in missing)
        raise _refused(
            found, f"it requires the tool kinds {said} (`executor.requires.tools`), which cannot be run here"
        )
    return Checked(path, content, canonical, playbook, found)


def _check(content: bytes, kinds: Kinds) -> tuple[list[Diagnosed], tuple[str, bytes, str, list[str]] | None]:
    document = parse(content, "playbook")
    found = examine(Subject(document, kinds))
    told = [_told(one) for one in found]
    if any(one.severity == "error" for one in found):
        return told, None
    tree = normalize(document)
    canonical, playbook = pinned(tree)
    required = tree.executor.requires.data if tree.executor.requires is not None else {}
    wanted = required.get("tools") if isinstance(required, dict) else None
    return told, (tree.path, canonical, playbook, list(map(str, wanted)) if isinstance(wanted, list) else [])


def _told(found: Diagnostic) -> Diagnosed:
    return Diagnosed(
        code=found.code,
        severity=found.severity,
        message=found.message,
        fix=found.fix,
        path=found.path,
        line=found.line,
        column=found.column,
    )


def _refused(found: list[Diagnosed], why: str) -> Refusal:
    errors = [one for one in found if one.severity == "error"]
    where = f"$.content, line {errors[0].line}" if errors else "$.content"
    return Refusal(
        422,
        "invalid-playbook",
        f"{why}; nothing was stored or started",
        where=where,
        fix=errors[0].fix if errors else None,
        errors=tuple(found),
    )
