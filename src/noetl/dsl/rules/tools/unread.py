"""Tells where the text itself was not read as its author wrote it, so that rules about tools add nothing to that.

Tested in tests/unit/dsl/rules/test_tools.py.
"""

from __future__ import annotations

from noetl.dsl.nodes import Node
from noetl.dsl.subject import Subject


def is_unread(subject: Subject, node: Node) -> bool:
    """Tell whether something is wrong with the reading of a node: inside it, around it, or with the tag before it."""
    text = subject.source.text
    for problem in subject.document.problems:
        if problem.kind == "legacy-boolean":
            continue
        if node.start <= problem.start < node.end or problem.start <= node.start < problem.end:
            return True
        if problem.end <= node.start and not text[problem.end : node.start].strip():
            return True
    return False
