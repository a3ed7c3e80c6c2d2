"""The state of one execution, as a fold of its events.

Only `evolve` changes it, event by event. It holds no rule of the language: those are in `decide` and its neighbours. Tested in tests/unit/engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Lineage = dict[str, frozenset[int]]  # fork → branches


@dataclass(slots=True)
class Token:
    """A token that waits at a step: for its siblings, for the gate, or for room."""

    token_id: str
    step: str
    args: dict[str, Any]
    lineage: Lineage
    seq: int
    parked: bool = False
    ready: bool = False  # joined and admitted, waiting for room or for the end of a pause


@dataclass(slots=True)
class StepRun:
    """A run of a step that has not ended."""

    run_id: str
    step: str
    number: int
    args: dict[str, Any]
    lineage: Lineage
    seq: int
    scheduled_at: int
    phase: str = "scheduled"  # scheduled, started, suspended, cancelling
    epoch: int = 0
    role: str = "step"  # step, final, compensation
    compensates: str | None = None
    suspension: Mapping[str, Any] | None = None
    writes: dict[str, Any] = field(default_factory=dict)
    sends: int = 0  # tokens that its router has yet to send


@dataclass(slots=True)
class Ended:
    """How the last run of a step ended."""

    run_id: str
    status: str
    result: Any
    error: Mapping[str, Any] | None
    seq: int


@dataclass(slots=True)
class Fork:
    """A router that fired several arcs; `spent` tells, per step, which branches won there."""

    fork_id: str
    router: str
    size: int
    spent: dict[str, frozenset[int]] = field(default_factory=dict)


@dataclass(slots=True)
class Timer:
    """Something that will happen at a time."""

    timer_id: str
    cause: str
    at: int
    run_id: str | None = None


@dataclass(slots=True)
class Execution:
    """Everything that is known of an execution."""

    execution_id: str
    seq: int = 0
    at: int = 0
    phase: str = "pending"  # pending, running, ending, ended
    outcome: str | None = None  # how it ends or ended: completed, failed, cancelled, partial
    paused: bool = False
    workload: dict[str, Any] = field(default_factory=dict)
    ctx: dict[str, Any] = field(default_factory=dict)
    iter: Mapping[str, Any] | None = None
    parent: Mapping[str, Any] | None = None
    tokens: dict[str, Token] = field(default_factory=dict)
    runs: dict[str, StepRun] = field(default_factory=dict)
    ended: dict[str, Ended] = field(default_factory=dict)
    forks: dict[str, Fork] = field(default_factory=dict)
    timers: dict[str, Timer] = field(default_factory=dict)
    signals: dict[str, list[Any]] = field(default_factory=dict)  # received and not yet waited for
    numbers: dict[str, int] = field(default_factory=dict)  # counters: tokens, forks, runs per step
    completed: list[tuple[str, str]] = field(default_factory=list)  # (step, run) in order of ending, for compensation
    failures: list[dict[str, Any]] = field(default_factory=list)
    result: Any = None
    error: Mapping[str, Any] | None = None
