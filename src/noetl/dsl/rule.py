"""What a rule is: its documentation, a bad and a good case, and the check itself.

One file in `rules/` holds one rule, and its page in the reference, `noetl explain CODE` and the tests all come from that
file. Tested in tests/unit/dsl/test_rules.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

from noetl.dsl.diagnostic import Severity
from noetl.dsl.nodes import Node
from noetl.dsl.sites import Site
from noetl.dsl.subject import Subject

Group = Literal["reading", "shape", "names", "templates", "graph", "tools", "dialects"]


class Found(Struct, frozen=True):
    """A finding of a rule: where, what exactly, and what to do; `end` and `start` are offsets in the source."""

    start: int
    end: int
    message: str
    fix: str
    severity: Severity | None = None  # where it differs from the rule's own


def at(node: Node, message: str, fix: str, severity: Severity | None = None) -> Found:
    """Point a finding at a whole node."""
    return Found(node.start, node.end, message, fix, severity)


def inside(
    subject: Subject, site: Site, offset: int, length: int, message: str, fix: str, severity: Severity | None = None
) -> Found:
    """Point a finding at a part of a template."""
    start = subject.locate(site, offset)
    end = subject.locate(site, offset + max(length, 1) - 1) + 1
    return Found(start, end, message, fix, severity)


class Rule(Struct, frozen=True):
    """One rule. Texts are Markdown, `bad` and `good` are whole playbooks that differ in this one thing."""

    code: str
    name: str
    group: Group
    severity: Severity
    summary: str  # one sentence: what is reported
    why: str  # why it is bad
    fix: str  # how it is put right
    bad: str
    good: str
    check: Callable[[Subject], Iterator[Found]]
