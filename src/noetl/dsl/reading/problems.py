"""Read problems: what is wrong with a text before it can be checked as a playbook.

The rules in `rules/reading` turn each kind into a diagnostic. Tested in tests/unit/dsl/reading/test_parse.py.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

ProblemKind = Literal[
    "syntax", "duplicate-key", "too-large", "too-deep", "alias-bomb", "not-text", "recursive-alias", "unknown-anchor",
    "tag", "many-documents", "empty", "bad-key", "legacy-boolean", "tab", "not-a-map",
]  # fmt: skip


class ReadProblem(Struct, frozen=True):
    """One read problem: its kind, its half-open range of characters and a message."""

    kind: ProblemKind
    start: int
    end: int
    message: str
    fix: str = ""  # if one is known
