"""Keeps, for every fork, who remembers it, and lets go of what nobody waits for any more.

A fork that at most one token or run remembers is forgotten.

Part of the fold: it decides nothing. Tested in tests/unit/engine/test_laws.py and test_decide.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from noetl.engine.state import Completed, Execution, Fork, Lineage
from noetl.model.events import Event


def lineage_of(data: Mapping[str, Iterable[int]]) -> Lineage:
    """Read a lineage from an event."""
    return {fork: frozenset(branches) for fork, branches in data.items()}


def add(state: Execution, carrier: str, lineage: Lineage) -> None:
    """Note that a token or run remembers these forks; forks that are forgotten already are taken out."""
    for fork_id in list(lineage):
        fork = state.forks.get(fork_id)
        if fork is None:
            del lineage[fork_id]
        else:
            fork.carriers.add(carrier)


def remove(state: Execution, carrier: str, lineage: Lineage) -> None:
    """Note that a token or run is gone."""
    for fork_id in list(lineage):
        fork = state.forks.get(fork_id)
        if fork is not None:
            fork.carriers.discard(carrier)
            settle(state, fork)


def settle(state: Execution, fork: Fork) -> None:
    """Forget a fork that at most one carrier remembers, once its router has sent every token.

    A last carrier that lost at some step remembers that: it is absorbed there.
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
    """Give the children whose run has ended before them: they undo what they did, and the end of all waits for that."""
    if not state.children:
        return []
    known = state.runs.keys() | state.replays.keys()
    return [child for child, (owner, _) in state.children.items() if owner not in known]


def child_finished(state: Execution, event: Event, payload: Mapping[str, Any]) -> None:
    """Take a child away that nobody but the end of the execution waits for."""
    if event.entity_id not in left_alone(state):
        return
    run_id, _ = state.children.pop(event.entity_id)
    if payload.get("compensated") is False:
        state.compensated = False
    if "compensate" in payload:  # it had ended well before it could be told: its step is one that was done
        step = run_id.rpartition("#")[0]
        state.completed.append(Completed(run_id, step, payload["compensate"], payload.get("result")))


def give_up(state: Execution) -> None:
    """Forget whatever could still have moved; replays of dead letters go on."""
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
    """Take out what only this run waits for; children that undo what they did are waited for by the execution."""
    for timer_id in [timer.timer_id for timer in state.timers.values() if timer.run_id == run_id]:
        del state.timers[timer_id]
    for child_id in [child for child, (owner, _) in state.children.items() if owner == run_id and not keep_children]:
        del state.children[child_id]
