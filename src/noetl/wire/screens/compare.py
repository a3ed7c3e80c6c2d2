"""Two executions side by side. Tested in tests/server/api/test_compare.py.

Fields are added, never renamed or removed.
"""

from __future__ import annotations

from typing import Any

from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Name
from noetl.wire.screens.moments import MomentChange

LAST_GOOD = "last-good"


class CompareQuery(Asked, frozen=True, rename={"with_": "with"}):
    """The other execution, or `last-good`: the newest completed one before this one."""

    with_: Name = LAST_GOOD


class ComparedHead(Answer, frozen=True):
    """One of two executions."""

    execution_id: str
    path: str
    playbook: str  # content hash
    version: int | None  # of the path when it started; null: it is not in the catalog
    status: str
    started_at: int
    ended_at: int | None
    duration_ms: int  # of one that has not ended: until now
    last_seq: int
    error: Any


class PlaybookDiff(Answer, frozen=True):
    """What changed in the playbook, from the other execution to this one."""

    differs: bool
    text: str | None  # unified diff; null: they are equal, or a text is not known or too long
    left_out: int  # lines of the diff, above 2,000


class StepSideRow(Answer, frozen=True):
    """A step of one execution; an empty state: it was not reached."""

    state: str
    runs: int
    attempts: int  # of its tasks, in all its step-runs; without those of items
    duration_ms: int | None  # of all its step-runs, from their starts to their ends


class StepPairRow(Answer, frozen=True):
    """A step in both executions."""

    step: str
    this: StepSideRow
    other: StepSideRow
    differs: bool  # in state, runs or attempts


class ArcSideRow(Answer, frozen=True):
    """An arc of one execution; an empty target: its playbook has no such arc."""

    target: str
    taken: int
    refused: int  # evaluated, and not taken


class ArcPairRow(Answer, frozen=True):
    """An arc that was taken more often in one execution."""

    source: str
    arc: int  # index in `next` of its source
    this: ArcSideRow
    other: ArcSideRow


class LookedRow(Answer, frozen=True):
    """An arc that a router looked at, with the values that its condition read."""

    arc: int
    target: str
    when: str | None  # null: it has no condition
    holds: bool
    taken: bool
    read: dict[str, Any] | None
    error: str | None


class GatedRow(Answer, frozen=True):
    """What a gate said to the tokens that came, with the values that it read."""

    admits: bool  # false: they were parked
    when: str  # the rule that matched, else those that admit; empty: not known, or without a condition
    read: dict[str, Any]
    errors: list[str]


class DecidedRow(Answer, frozen=True):
    """A decision of a router or of a gate."""

    seq: int
    at: int
    run: str
    event: str  # after which it decided: step.done, step.failed, loop.done
    arcs: list[LookedRow]  # none of a gate
    gate: GatedRow | None = None  # null of a router


class SplitRow(Answer, frozen=True):
    """The first decision that differs; `number` counts those of its router or gate."""

    step: str
    number: int
    arc: int  # the first arc that only one of them took; -1: the gate of the step decided
    this: DecidedRow
    other: DecidedRow


class Compared(Answer, frozen=True):
    """What changed from the other execution to this one.

    `before` of a change is the value in the other execution. A value over 2 kB is `{cut, bytes}`.
    """

    this: ComparedHead
    other: ComparedHead
    playbook: PlaybookDiff
    workload: list[MomentChange]
    steps: list[StepPairRow]  # that one of them reached
    arcs: list[ArcPairRow]  # that differ
    split: SplitRow | None  # null: routers and gates decided alike as far as both went
    unaligned: list[str]  # steps whose routers or gates decided too often to be compared one by one
    left_out: dict[str, int]  # how many changes of the workload, steps and arcs
