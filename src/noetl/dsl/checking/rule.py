"""A rule: its documentation, a bad and a good example, and the check itself.

The reference page, `noetl explain CODE` and tests are generated from it. Tested in tests/unit/dsl/test_rules.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal

from msgspec import Struct

from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.diagnostic import Severity
from noetl.dsl.reading.nodes import Node

Group = Literal["reading", "shape", "names", "templates", "graph", "tools", "dialects"]
_GROUPS: Final[dict[str, Group]] = {
    "0": "reading", "1": "shape", "2": "names", "3": "templates", "4": "graph", "5": "tools", "8": "dialects",
}  # fmt: skip


class Finding(Struct, frozen=True):
    """A finding of a rule: range in the source, what is wrong, how to fix it."""

    start: int
    end: int
    message: str
    fix: str
    severity: Severity | None = None  # overrides the severity of the rule


Check = Callable[[CheckContext], Iterator[Finding]]


class Rule(Struct, frozen=True):
    """One rule; `bad` and `good` are whole playbooks that differ in one thing."""

    code: str
    name: str
    severity: Severity
    summary: str  # one sentence: what is reported
    why: str
    fix: str
    bad: str
    good: str
    check: Check

    @property
    def group(self) -> Group:
        """The group of the rule, from the first digit of its code."""
        return _GROUPS[self.code[3]]


def at(node: Node, message: str, fix: str, severity: Severity | None = None) -> Finding:
    """Point a finding at a whole node."""
    return Finding(node.start, node.end, message, fix, severity)


def inside(
    subject: CheckContext,
    site: TemplateSite,
    offset: int,
    length: int,
    message: str,
    fix: str,
    severity: Severity | None = None,
) -> Finding:
    """Point a finding at a part of a template."""
    start = subject.locate(site, offset)
    end = subject.locate(site, offset + max(length, 1) - 1) + 1
    return Finding(start, end, message, fix, severity)


def example(body: str) -> str:
    """Return an example playbook with `body` after its metadata."""
    return f"apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {{ name: hello, path: examples/hello }}\n{body}"
