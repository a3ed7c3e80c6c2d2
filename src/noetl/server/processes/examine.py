"""Examine the text of a playbook: its diagnostics and, without errors, its tree.

A pure function: `playbook_check` calls it in a process of its own. Tested in tests/server/api/test_catalog.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.uses import Unavailable
from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.pin import pinned
from noetl.dsl.validate import examine, tolerate
from noetl.wire.answers import Diagnosed


@dataclass(frozen=True, slots=True)
class Tree:
    """The pinned tree of a playbook, and the tool kinds that it requires."""

    path: str
    canonical: bytes
    playbook: str
    requires: list[str]


@dataclass(frozen=True, slots=True)
class Examined:
    """The diagnostics of a text; it has a tree where none of them is an error."""

    diagnostics: list[Diagnosed]
    tree: Tree | None


def examine_text(content: bytes, kinds: Kinds, unavailable: Unavailable, tolerant: bool = False) -> Examined:
    """Check a playbook's text, and pin it; `tolerant` leaves out unknown keys."""
    subject = CheckContext(parse(content, "playbook"), kinds, unavailable=unavailable)
    found, subject = tolerate(subject) if tolerant else (examine(subject), subject)
    diagnostics = [_as_answer(one) for one in found]
    if any(one.severity == "error" for one in found):
        return Examined(diagnostics, None)
    playbook = subject.playbook
    required = playbook.executor.requires.data if playbook.executor.requires is not None else {}
    tools = required.get("tools") if isinstance(required, dict) else None
    return Examined(
        diagnostics,
        Tree(playbook.path, *pinned(playbook), list(map(str, tools)) if isinstance(tools, list) else []),
    )


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
