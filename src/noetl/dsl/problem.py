"""A read problem: what is wrong with a text before it can mean anything as a playbook.

Severity, code and fix are not decided here: the rules turn each kind into a diagnostic.
Tested in tests/unit/dsl/test_parse.py.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

ProblemKind = Literal[
    "syntax",
    "duplicate-key",
    "too-large",
    "too-deep",
    "alias-bomb",
    "not-text",
    "recursive-alias",
    "unknown-anchor",
    "tag",
    "many-documents",
    "empty",
    "bad-key",
    "legacy-boolean",
    "tab",
    "not-a-map",
]


class ReadProblem(Struct, frozen=True):
    """One thing wrong with a text: its kind, its half-open range of characters and the facts in a sentence."""

    kind: ProblemKind
    start: int
    end: int
    message: str
