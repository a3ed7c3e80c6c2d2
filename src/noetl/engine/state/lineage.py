"""Lineage: the forks that tokens and runs carry; and what an ended run drops.

A fork that at most one token or run carries is dropped. Tested in tests/unit/engine/test_laws.py and test_decide.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from noetl.engine.state.execution import Completed, Execution, Lineage, Split
from noetl.model.events import Event


def lineage_of(data: Mapping[str, Iterable[int]]) -> Lineage:
    """Decode a lineage from an event."""
    return {fork: frozenset(branches) for fork, branches in data.items()}


def add(state: Execution, carrier: str, lineage: Lineage) -> None:
    """Add a carrier to its forks; drop forks from its lineage that are gone."""
    for fork_id in list(lineage):
        fork = state.forks.get(fork_id)
        if fork is None:
            del lineage[fork_id]
        else:
            fork.carriers.add(carrier)


def remove(state: Execution, carrier: str, lineage: Lineage) -> None:
    """Remove a token or run from its forks."""
    for fork_id in list(lineage):
        fork = state.forks.get(fork_id)
        if fork is not None:
            fork.carriers.discard(carrier)
            settle(state, fork)


def settle(state: Execution, fork: Split) -> None:
    """Drop a fork that at most one carrier has, once its router has sent every token.

    A last carrier that lost at some step keeps the fork, because it is absorbed there.
    """
    if fork.unsent > 0 or len(fork.carriers) > 1:
        return
    for carrier in fork.carriers if fork.spent else ():
        last = state.tokens.get(carrier) or state.runs.get(carrier)
        if last is not None and any(not won & last.lineage[fork.fork_id] for won in fork.spent.values()):
            return
    state.forks.pop(fork.fork_id, None)
    for carrier in fork.carriers:
        holder = state.tokens.get(carrier) or state.runs.get(carrier)
        if holder is not None:
            holder.lineage.pop(fork.fork_id, None)


def left_alone(state: Execution) -> list[str]:
    """Return the children that outlived their run and still compensate."""
    if not state.children:
        return []
    known = state.runs.keys() | state.replays.keys()
    return [child for child, (owner, _) in state.children.items() if owner not in known]


def child_finished(state: Execution, event: Event, payload: Mapping[str, Any]) -> None:
    """Remove a child that only the end of the execution waits for."""
    if event.entity_id not in left_alone(state):
        return
    run_id, _ = state.children.pop(event.entity_id)
    if payload.get("compensated") is False:
        state.compensated = False
    if "compensate" in payload:  # it completed before the cancellation reached it, so its step counts as done
        step = run_id.rpartition("#")[0]
        state.completed.append(Completed(run_id, step, payload["compensate"], payload.get("result")))


def give_up(state: Execution) -> None:
    """Drop everything that could still move; retried dead letters go on."""
    state.tokens.clear()
    state.forks.clear()
    state.signals.clear()
    if not state.timers and not state.children:
        return
    for timer_id in [name for name, timer in state.timers.items() if timer.run_id not in state.replays]:
        del state.timers[timer_id]
    for child_id in [child for child, (owner, _) in state.children.items() if owner not in state.replays]:
        del state.children[child_id]


def forget(state: Execution, run_id: str, *, keep_children: bool = False) -> None:
    """Drop the timers and children of a run."""
    for timer_id in [timer.timer_id for timer in state.timers.values() if timer.run_id == run_id]:
        del state.timers[timer_id]
    for child_id in [child for child, (owner, _) in state.children.items() if owner == run_id and not keep_children]:
        del state.children[child_id]
