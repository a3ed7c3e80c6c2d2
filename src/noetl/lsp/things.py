"""Things that a playbook names, and the mentions of them. Tested with `occurrences` in tests/unit/lsp/test_occurrences.py."""

from __future__ import annotations

from typing import Literal, NamedTuple

from noetl.dsl.locate import locate
from noetl.dsl.nodes import Scalar
from noetl.dsl.subject import Subject

ThingKind = Literal[
    "step", "task", "iterator", "workload", "ctx", "iter", "scratch", "input", "workbook", "credential", "edge"
]


class Thing(NamedTuple):
    """A named thing; `owner` is the step it belongs to, where it belongs to one."""

    kind: ThingKind
    name: str
    owner: str = ""


class Occurrence(NamedTuple):
    """One mention: its range, and whether it is where the thing comes from."""

    start: int
    end: int
    thing: Thing
    defines: bool = False
    spelled: bool = True  # False where the text there is not the name itself, such as `previous`


def named(subject: Subject, node: Scalar, thing: Thing, *, defines: bool = False) -> Occurrence:
    """Give the mention that a whole scalar is."""
    return part(subject, node, 0, thing, length=len(node.text), defines=defines)


def part(
    subject: Subject, node: Scalar, offset: int, thing: Thing, *, length: int | None = None, defines: bool = False
) -> Occurrence:
    """Give the mention that a part of a scalar is; without a length, the rest of it."""
    end = len(node.text) if length is None else offset + length
    start = locate(subject.source, node, offset)
    return Occurrence(start, locate(subject.source, node, end - 1) + 1 if end > offset else start, thing, defines)
