"""The state of one execution: the fold of its events.

Only `evolve` changes it, event by event. Tested in tests/unit/engine/test_laws.py and test_decide.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any, cast

import msgspec
from msgspec import Struct

MOST_WARNINGS = 50  # of one execution
STATE_VERSION = 9  # version of the fold; a snapshot of another version is ignored
Lineage = dict[str, frozenset[int]]  # fork → branches
_WIDTH: attrgetter[int] = attrgetter("width")


class Token(Struct):
    """A token at a step, waiting for its siblings, for the gate, or for capacity."""

    token_id: str
    step: str
    args: dict[str, Any]
    lineage: Lineage
    seq: int
    parked: int = 0  # seq of the event that parked it; 0 if not parked
    gate: Mapping[str, Any] | None = None  # values that the gate read when it last denied the token
    event: Mapping[str, Any] | None = None  # the boundary event that sent it


class Suspended(Struct):
    """A pipeline that released its lease until something happens."""

    cause: str
    pipeline: Mapping[str, Any]
    seq: int
    until: int | None = None
    signal: str | None = None
    child_id: str | None = None


class Piece(Struct):
    """A range of a loop's items, queued or leased; `pending` have not ended."""

    start: int
    count: int
    width: int
    pending: set[int]
    at: int
    epoch: int = 0
    resume: Mapping[str, Any] | None = None
    claim: bool = False  # a claim of rows instead of a range; its rows become items from `start` on
    idle: bool = False  # of a claim: no row was in flight when it was issued
    given: int = 0  # of a claim: rows that it returned, duplicates included
    rows: list[tuple[Any, str | None]] = []  # of a claim: rows with their keys, until they become frames


class Loop(Struct):
    """A running loop: counters, ranges, and results that are not stored yet."""

    items: Any  # the list, the manifest of a stored list, or {range: [start, stop, step]}
    count: int
    sequential: bool
    local: bool
    width: int
    best_effort: bool
    reduce: dict[str, str]
    cursor: bool = False  # workers claim rows; there is no list
    issued: int = 0  # items below this index were issued
    back: list[tuple[int, int]] = []  # (start, count) of ranges that were returned unstarted
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    busy_ms: int = 0  # duration of the ended pieces, and how many items they had
    timed: int = 0
    pieces: dict[str, Piece] = {}
    suspended: dict[int, Suspended] = {}
    writes: dict[str, dict[int, Any]] = {}  # key → index → value, until the loop ends
    errors: list[dict[str, Any]] = []  # errors of the first failed items
    keys: dict[str, int] = {}  # of a cursor: row key → index
    names: dict[int, str] = {}  # of a cursor's rows that have not ended: index → key
    drained: bool = False  # a claim returned no row while none was in flight
    dry: bool = False  # the last claim returned no row
    frame: Mapping[str, Any] = {}  # of a cursor: how rows are claimed and run, see noetl.engine.state.frames
    stale: int = 0  # consecutive claims that returned only known rows
    results: dict[int, Any] = {}
    bytes: int = 0  # approximate size of these results
    kept: int = 0  # results below this index are stored, in `parts`
    parts: list[dict[str, Any]] = []

    @property
    def total(self) -> int:
        return self.count

    @property
    def here(self) -> Sequence[Any] | None:
        """The list of the loop; None if it is stored."""
        if not isinstance(self.items, Mapping):
            return cast(Sequence[Any], self.items)
        return range(*self.items["range"]) if "range" in self.items else None

    def settled(self) -> int:
        """Return the index below which every item has ended."""
        open_ones = [min(piece.pending) for piece in self.pieces.values() if piece.pending]
        return min([self.issued, *open_ones, *self.suspended, *(start for start, _ in self.back)])

    def listed(self) -> list[Any]:
        """Return the results as a list; none of them may be stored."""
        return [self.results.get(index) for index in range(self.count)]

    @property
    def woken(self) -> int:
        """How many items were woken and are about to end."""
        in_flight = sum(len(piece.pending) for piece in self.pieces.values()) + len(self.suspended)
        return self.issued - self.ended - in_flight - sum(count for _, count in self.back)

    @property
    def room(self) -> int:
        """How many more items may be in flight; suspended items count."""
        return self.width - sum(map(_WIDTH, self.pieces.values())) - len(self.suspended)

    @property
    def ready(self) -> int:
        """Items below this index may be issued; rows only after their claim."""
        if not self.cursor:
            return self.count
        return min((piece.start for piece in self.pieces.values() if piece.claim), default=self.count)

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed + self.skipped

    def stats(self) -> dict[str, int]:
        return {"total": self.total, "succeeded": self.succeeded, "failed": self.failed, "skipped": self.skipped}


class Seen(Struct):
    """What a run reads of the state at its scheduling, plus its loop's writes."""

    ctx: dict[str, Any] = {}
    steps: dict[str, Any] = {}
    statuses: dict[str, str] = {}


class StepRun(Struct):
    """A run of a step that has not ended, or whose router has not decided."""

    run_id: str
    step: str
    number: int
    args: dict[str, Any]
    lineage: Lineage
    seq: int
    scheduled_at: int
    phase: str = "scheduled"  # scheduled, started, suspended, routing
    epoch: int = 0
    role: str = "step"  # step, final, compensation, replay
    compensates: str | None = None
    attempt: int = 1  # of a compensation
    suspended: Suspended | None = None
    resume: Mapping[str, Any] | None = None  # the pipeline's snapshot, and what woke it
    loop: Loop | None = None
    sends: int = 0  # tokens that its router still has to send
    started_at: int = 0  # when its first worker started it; 0 before that
    seen: Seen | None = None  # None if its templates read nothing that changes
    pool: str = ""
    priority: int = 0
    of: Mapping[str, Any] | None = None  # of a retried dead letter: its run, item and patch


class Ended(Struct):
    """The end of a step's last run."""

    run_id: str
    status: str
    result: Any
    error: Mapping[str, Any] | None
    seq: int


class Completed(Struct):
    """A successful run that has a compensation."""

    run_id: str
    step: str
    by: str
    result: Any
    state: str = "open"  # open, done, failed
    attempts: int = 0


class Split(Struct):
    """A router that took several arcs; `spent`: step → the branches that won."""

    fork_id: str
    router: str
    size: int
    unsent: int
    carriers: set[str] = set()  # tokens and runs that carry it
    spent: dict[str, frozenset[int]] = {}


class Timer(Struct):
    """A timer that is set."""

    timer_id: str
    cause: str  # execution, step, deadline, loop, wake
    at: int
    run_id: str | None = None
    index: int | None = None


class Execution(Struct):
    """The whole state of an execution."""

    execution_id: str
    seq: int = 0
    at: int = 0
    phase: str = "pending"  # pending, queued, running, ending, closing, ended
    outcome: str | None = None  # how it ends or ended: completed, failed, cancelled, partial
    cut: str | None = None  # why it was stopped: cancelled, timeout, abandoned, refused, endless
    undo: bool = False  # it was cancelled with compensation
    paused: bool = False
    review: Mapping[str, Any] | None = None  # why work and timers are withheld until it is unpaused, since when
    path: str = ""
    playbook: str = ""
    started_at: int = 0
    ended_at: int = 0
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    iter: Mapping[str, Any] | None = None  # the enclosing iteration of a child
    parent: Mapping[str, Any] | None = None
    pool: str = ""  # pool of all its work, if the start named one
    tags: tuple[str, ...] = ()
    priority: int = 0  # default priority of its work
    tokens: dict[str, Token] = {}
    runs: dict[str, StepRun] = {}
    ended: dict[str, Ended] = {}
    forks: dict[str, Split] = {}
    timers: dict[str, Timer] = {}
    children: dict[str, tuple[str, int | None]] = {}  # child → run, item
    signals: dict[str, list[Any]] = {}  # received, and no `wait` has consumed them
    numbers: dict[str, int] = {}  # counters: tokens, forks, children, chunks, runs per step
    counts: dict[str, dict[str, int]] = {}  # step → done, failed, skipped
    completed: list[Completed] = []
    compensated: bool | None = None
    failures: list[dict[str, Any]] = []
    final_ended: bool = False
    replays: dict[str, StepRun] = {}  # retried dead letters in flight; nothing waits for them
    letters: dict[str, str] = {}  # dead letters that were acted on → status
    partial: dict[str, int] = {}  # loops that ended with failed items → how many are not repaired
    result: Any = None
    error: Mapping[str, Any] | None = None
    warnings: list[dict[str, Any]] = []  # the first ones: step, message, seq
    slot: Mapping[str, Any] | None = None  # the limits that it counts for: group, limit, on_limit, rate
    trace: str = ""  # the W3C traceparent that it was started in
    admitted_at: int = 0  # when its limits admitted it, if they had kept it waiting

    def warn(self, step: str, message: str) -> None:
        """Keep a warning, once, unless there are many already."""
        told = any(one["message"] == message and one["step"] == step for one in self.warnings)
        if not told and len(self.warnings) < MOST_WARNINGS:
            self.warnings.append({"step": step, "message": message, "seq": self.seq})

    @property
    def has_begun(self) -> bool:
        """Whether it ever had a token: a fork may be queued with its history."""
        return bool(self.numbers)

    @property
    def is_withheld(self) -> bool:
        """Whether neither work nor timers are handed out: for a review, or by a limit."""
        return self.review is not None or self.phase == "queued"

    @property
    def status(self) -> str:
        """The status in the words of the language."""
        phase = self.phase
        if phase == "running" and self.runs:
            return "paused" if self.paused else "running"
        if phase in ("pending", "queued"):
            return "paused" if self.paused else "pending"
        if phase == "ended":
            return self.outcome or "completed"
        if self.paused:
            return "paused"
        if self.runs or phase != "running":
            return "running"
        return "waiting" if any(token.parked for token in self.tokens.values()) else "running"


def see(state: Execution, sees: Mapping[str, Any]) -> Seen:
    """Copy what a run reads; values are shared, because writes copy."""
    seen = Seen()
    ctx, steps = sees.get("ctx"), sees.get("steps")
    if ctx:
        seen.ctx = dict(state.ctx) if ctx is True else {key: state.ctx[key] for key in ctx if key in state.ctx}
    for name in () if not steps else state.ended if steps is True else steps:
        ended = state.ended.get(name)
        if ended is not None and ended.status != "skipped":
            seen.steps[name] = ended.result
    if sees.get("statuses"):
        seen.statuses = {name: ended.status for name, ended in state.ended.items()}
    return seen


def checksum(state: Execution) -> str:
    """Return a hash of the whole state; equal wherever the same events were applied."""
    data = msgspec.to_builtins(state, str_keys=True, order="deterministic")
    if data["slot"] is None:  # executions without limits have the hash that they had before there were limits
        del data["slot"]
    for later in ("trace", "admitted_at"):  # likewise
        if not data[later]:
            del data[later]
    return blake2b(msgspec.json.encode(data, order="deterministic"), digest_size=16).hexdigest()


def dump(state: Execution) -> bytes:
    """Encode a state as a snapshot."""
    return msgspec.msgpack.encode(state)


def load(data: bytes) -> Execution:
    """Decode a snapshot of this version."""
    return msgspec.msgpack.decode(data, type=Execution)
