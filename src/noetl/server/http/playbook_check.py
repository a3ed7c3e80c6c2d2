"""Validate and pin a playbook, for the catalog and for a start by content.

Runs the checks of `noetl validate` in a process beside the server, so a hostile text neither blocks the event loop nor
outlives its deadline. Tested in tests/server/api/test_catalog.py and test_hostile_playbooks.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from noetl.server.http.limits import refuse_extremes
from noetl.server.problems import Refusal
from noetl.server.processes.examine import Examined
from noetl.server.processes.side import OutOfMemory, TimedOut
from noetl.server.services import Services
from noetl.settings import CHECK_TIMEOUT
from noetl.wire.answers import Diagnosed

_SMALLER = "Split it into smaller playbooks that call each other with `kind: playbook`"


@dataclass(frozen=True, slots=True)
class Checked:
    """A playbook without errors."""

    path: str
    content: bytes
    canonical: bytes
    playbook: str
    diagnostics: list[Diagnosed]


async def check_playbook(services: Services, text: str, *, tolerant: bool = False) -> Checked:
    """Validate a text. Raises Refusal with all diagnostics if it has errors.

    With `tolerant`, unknown keys are warnings, and the tree is without them.
    """
    content = text.encode("utf-8", "surrogatepass")
    found: Examined = await run_check(
        services, services.checks, content, tolerant, end=" Nothing was stored or started."
    )
    if found.tree is None:
        raise _refusal(found.diagnostics, "The playbook has errors")
    tree = found.tree
    refuse_extremes(tree.canonical, "The playbook")
    missing = services.cannot_run(tree.requires)
    if missing:
        names = ", ".join(f"`{kind}`" for kind in missing)
        raise _refusal(
            found.diagnostics,
            f"The playbook requires tool kinds that this server cannot run (`executor.requires.tools`): {names}",
        )
    return Checked(tree.path, content, tree.canonical, tree.playbook, found.diagnostics)


async def run_check(services: Services, function: str, *arguments: Any, end: str = "") -> Any:
    """Call a function on a playbook's text beside the server. Raises Refusal."""
    seconds = services.bounds.check_s
    try:
        return await services.side.run(function, *arguments, deadline_s=seconds)
    except TimedOut:
        why, fix = (
            f"takes more than {seconds:g} s of processor time",
            f"{_SMALLER}, or raise {CHECK_TIMEOUT} of the server.",
        )
    except OutOfMemory:
        why, fix = "needs too much memory", f"{_SMALLER}."
    raise Refusal(422, "too-complex", f"Checking the playbook {why}.{end}", where="$.content", fix=fix)


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
