"""What is known of a step before it runs, computed once per version of a playbook.

Made by `plan`. Tested in tests/unit/engine/decision/test_slice.py.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from noetl.dsl.tree.playbook import Arc, Step

Paths = frozenset[tuple[str | int, ...]]


class Part(Struct, frozen=True):
    """What a step's templates may read of a scope: all of it, or these names."""

    is_whole: bool = False
    names: frozenset[str] = frozenset()
    keys: tuple[str, ...] = ()  # of the names, those that can only be keys of this scope


class StepPlan(Struct, frozen=True):
    """A step, and what follows for it from the playbook and the configuration."""

    step: Step
    join: Any
    is_work: bool  # a run of it is one work item; a loop is issued in ranges instead
    arcs: tuple[tuple[int, Arc], ...]  # those that lead to a step of the playbook, with their places in the file
    router_reads: bool  # an arc has a template
    when_limit: Any  # `evaluate_when_timeout_ms`
    compensate: str | None  # the step that compensates it
    reads: Paths  # paths that the worker's templates may read
    reads_all: bool  # its code reads the whole context
    asks_for_steps: bool  # its templates call `done`, `ok` or `fail`
    sees: bool  # any of these three
    roots: frozenset[str]  # the first names of what it reads
    ctx: Part
    workload: Part
    requires: tuple[str, ...]  # tags that a worker must have
    kinds: tuple[str, ...]  # of its tasks that the server limits, as `kind http`
    places: bool  # a pool or a priority is set for it
    deadline: Any  # `deadline_s` as written
    timeouts: tuple[Any, ...]  # each `timeout_s` as written
    max_runs: int  # `limits.max_step_runs`
    routings: dict[str, Any] = {}  # by event, what its router decides if nothing has to be read
    infos: list[Any] = []  # what the pipelines of its runs share, once one ended on the server

    def remember_routing(self, event: str, routing: Any) -> None:
        """Keep what the router decides after an event."""
        self.routings[event] = routing

    def remember_info(self, info: Any) -> None:
        """Keep what the pipelines of its runs share."""
        self.infos.append(info)


_UNREAD: Final = Part()


def part(reads: Paths, *scope: str) -> Part:
    """Return what is read of a scope; a bare name may mean a key of it."""
    if not reads:
        return _UNREAD
    inside = [path for path in reads if path[0] in scope]
    keys = tuple(sorted(str(path[1]) for path in inside if len(path) > 1))
    is_whole = any(len(path) == 1 for path in inside)
    return Part(is_whole, roots(reads).union(keys), keys)


def roots(reads: Paths) -> frozenset[str]:
    """Return the first names of paths."""
    return frozenset(str(path[0]) for path in reads)


def router_reads(step: Step) -> bool:
    """Return whether an arc of a step has anything to evaluate."""
    return any(arc.when is not None or arc.args or arc.sets for arc in step.arcs)
