"""What is known of a step before it runs: found out once per version of a playbook, and looked up ever after.

Also tells where a token goes a straight way: through a router with nothing to evaluate (`onward`), into a step that asks
nothing of a lone token (`lets_in`), or whose work it becomes at once (`enters`), and into an execution that begins so
(`entrance`). The straight ways, in `route`, `flow` and `straight`, write what the general ones would. Made by `plan`.
Tested in tests/unit/engine/test_straight.py and test_slice.py.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final

from msgspec import Struct

from noetl.dsl.playbook import Step

Paths = frozenset[tuple[str | int, ...]]


class Onward(Struct, frozen=True):
    """The way on of a step that went well: one arc or none, and nothing to evaluate. What its events say is fixed."""

    evaluated: Mapping[str, Any]  # by `next.evaluated`
    token: Mapping[str, Any] | None  # by `token.created`, for a token that remembers no fork


class Part(Struct, frozen=True):
    """What a step's templates may read of a scope: all of it, or what has one of these names."""

    is_whole: bool = False
    names: frozenset[str] = frozenset()
    keys: tuple[str, ...] = ()  # of the names, those that can be nothing but keys of this scope


class Entrance(Struct, frozen=True):
    """The way into an execution whose start has nothing to evaluate. What its events say is fixed, but the payload."""

    known: StepPlan  # the entry step
    workload: Mapping[str, Any]  # under the payload
    started: Mapping[str, Any]  # by `workflow.started`
    token: Mapping[str, Any]  # by `token.created`


class StepPlan(Struct, frozen=True):
    """A step, and what follows from its playbook and the configuration."""

    step: Step
    is_work: bool  # a run of it is one piece of work; a loop is issued in ranges instead
    is_simple: bool  # its run has nothing to begin with but its work
    join: Any
    lets_in: bool  # a lone token becomes a run at once: there is no gate and no count
    enters: bool  # and the run is its work, and nothing has to be evaluated for that
    counter: str  # what its runs are numbered by
    onward: Onward | None
    router_reads: bool  # its arcs say something that is evaluated
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


def onward(step: Step, steps: Container[str], final: str | None) -> Onward | None:
    """Find the way on of a step; None where there is something to choose, to evaluate or to undo."""
    router = step.router
    if step.sets or step.compensate is not None or (router is not None and len(router.arcs) > 1):
        return None
    if router is None:
        return Onward({"event": "step.done", "arcs": [], "taken": []}, None)
    if not router.arcs:
        return Onward({"event": "step.done", "arcs": [], "taken": [], "mode": router.mode}, None)
    [arc] = router.arcs
    if arc.when is not None or arc.args or arc.sets or arc.step not in steps or arc.step == final:
        return None
    looked = {"arc": 0, "step": arc.step, "matched": True}
    cause = {"name": "step.done", "step": step.name}
    return Onward(
        {"event": "step.done", "arcs": [looked], "taken": [0], "mode": router.mode},
        {"step": arc.step, "args": {}, "lineage": {}, "event": cause},
    )


def entrance(known: StepPlan, workload: Mapping[str, Any]) -> Entrance:
    """Give the way in by a step that a lone token enters at once."""
    entry = known.step.name
    token = {"step": entry, "args": {}, "lineage": {}, "event": {"name": "workflow.started"}}
    return Entrance(known, workload, {"entry": entry}, token)


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


def lets_in(step: Step) -> bool:
    """Tell whether a token that remembers no fork becomes a run of a step at once."""
    return step.admit is None and step.join in ("all", "each")


def router_reads(step: Step) -> bool:
    """Tell whether the arcs of a step say anything that is evaluated."""
    return any(arc.when is not None or arc.args or arc.sets for arc in step.arcs)
