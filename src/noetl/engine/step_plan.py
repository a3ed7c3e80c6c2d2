"""What is known of a step before it runs: found out once per version of a playbook, and looked up ever after.

Also tells where a token goes a straight way: through a router with nothing to evaluate (`onward`), into a step that asks
nothing of a lone token (`lets_in`), or whose work it becomes at once (`enters`), and into an execution that begins so
(`entrance`). The straight ways, in `route`, `flow` and `straight`, write what the general ones would. Made by `plan`.
Tested in tests/unit/engine/test_straight.py and test_slice.py.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from noetl.dsl.playbook import Arc, Step

Paths = frozenset[tuple[str | int, ...]]


class Part(Struct, frozen=True):
    """What a step's templates may read of a scope: all of it, or what has one of these names."""

    is_whole: bool = False
    names: frozenset[str] = frozenset()
    keys: tuple[str, ...] = ()  # of the names, those that can be nothing but keys of this scope


class StepPlan(Struct, frozen=True):
    """A step, and what follows from its playbook and the configuration."""

    step: Step
    join: Any
    is_work: bool  # a run of it is one piece of work; a loop is issued in ranges instead
    arcs: tuple[tuple[int, Arc], ...]  # those that lead to a step of the playbook, with their places in the file
    router_reads: bool  # an arc has a template
    when_limit: Any  # `evaluate_when_timeout_ms`
    compensate: str | None  # the step that undoes it
    reads: Paths  # what a worker's templates may read
    reads_all: bool  # its code asks for everything
    asks_for_steps: bool  # its templates call `done`, `ok` or `fail`
    sees: bool  # any of these three
    roots: frozenset[str]  # the first names of what it reads
    ctx: Part
    workload: Part
    requires: tuple[str, ...]  # tags that a worker must have
    places: bool  # something says to which pool its work goes, or how urgent it is
    deadline: Any  # `deadline_s` as it is written
    timeouts: tuple[Any, ...]  # each `timeout_s` as it is written


_NOTHING: Final = Part()


def part(reads: Paths, *scope: str) -> Part:
    """Find what is read of a scope, by the names that it has; a bare name may mean a key of it."""
    if not reads:
        return _NOTHING
    inside = [path for path in reads if path[0] in scope]
    keys = tuple(sorted(str(path[1]) for path in inside if len(path) > 1))
    is_whole = any(len(path) == 1 for path in inside)
    return Part(is_whole, roots(reads).union(keys), keys)


def roots(reads: Paths) -> frozenset[str]:
    """Give the first names of paths."""
    return frozenset(str(path[0]) for path in reads)


def router_reads(step: Step) -> bool:
    """Tell whether the arcs of a step say anything that is evaluated."""
    return any(arc.when is not None or arc.args or arc.sets for arc in step.arcs)
