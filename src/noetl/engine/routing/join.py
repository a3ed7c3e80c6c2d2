"""Joins: which tokens belong together, and what they still wait for.

Tokens of one fork that meet at a step are siblings. They wait while another sibling can still arrive without passing the
fork's router. Reads the state and never changes it. Tested in tests/unit/engine/routing/test_join.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from msgspec import Struct

from noetl.engine.plan.plan import Plan
from noetl.engine.state.execution import Execution, Lineage, Split, Token


class Meeting(Struct):
    """Tokens that belong together at a step, and the verdict of its join."""

    step: str
    tokens: list[Token]
    verdict: str = "go"  # go, wait, absorb, fail
    missing: set[str] = set()  # tokens and runs that can still arrive
    arrived: int = 0
    needed: int = 0

    @property
    def first(self) -> int:
        return min(token.seq for token in self.tokens)


def meetings(plan: Plan, state: Execution) -> list[Meeting]:
    """Return the meetings of all tokens that are not parked, oldest first."""
    found: list[Meeting] = []
    by_step: dict[str, list[Token]] = {}
    for token in state.tokens.values():
        if not token.parked:
            by_step.setdefault(token.step, []).append(token)
    for step, tokens in by_step.items():
        join = plan.steps[step].join
        if join == "each":
            found += [Meeting(step, [token]) for token in tokens]
        elif join == "all" or not isinstance(join, int | str) or isinstance(join, bool):
            for group in _groups(tokens):
                found.append(_all(plan, state, step, group))
        else:
            found += _some(plan, state, step, tokens, 1 if join == "any" else int(join))
    return sorted(found, key=lambda meeting: meeting.first) if len(found) > 1 else found


def deadlocked(waiting: list[Meeting]) -> Meeting | None:
    """Return the oldest meeting of a set of meetings that wait only for each other."""
    stuck = list(waiting)
    while stuck:
        inside = {token.token_id for meeting in stuck for token in meeting.tokens}
        rest = [meeting for meeting in stuck if meeting.missing <= inside]
        if len(rest) == len(stuck):
            return min(stuck, key=lambda meeting: meeting.first)
        stuck = rest
    return None


def in_arc_order(tokens: list[Token]) -> list[Token]:
    """Order tokens as the arcs that sent them stand in the file."""

    if len(tokens) == 1:
        return tokens

    def place(token: Token) -> tuple[list[tuple[int, int]], int]:
        return sorted((_number(fork), min(branches)) for fork, branches in token.lineage.items()), token.seq

    return sorted(tokens, key=place)


def merged_lineage(tokens: list[Token]) -> Lineage:
    """Return the union of the tokens' lineages."""
    merged: Lineage = {}
    for token in tokens:
        for fork, branches in token.lineage.items():
            merged[fork] = merged.get(fork, frozenset()) | branches
    return merged


def _number(fork_id: str) -> int:
    return int(fork_id[1:])


def _groups(tokens: list[Token]) -> Iterable[list[Token]]:
    if len(tokens) == 1:
        return [tokens]
    root = list(range(len(tokens)))

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = number = root[root[number]]
        return number

    places: dict[str, dict[frozenset[int], list[int]]] = {}
    for number, token in enumerate(tokens):
        for fork, branches in token.lineage.items():
            places.setdefault(fork, {}).setdefault(branches, []).append(number)
    for branched in places.values():
        for (one, here), (other, there) in combinations(branched.items(), 2):
            if not one & other:
                for number in (*here, *there):
                    root[find(number)] = find(here[0])
    groups: dict[int, list[Token]] = {}
    for number, token in enumerate(tokens):
        groups.setdefault(find(number), []).append(token)
    return groups.values()


def _all(plan: Plan, state: Execution, step: str, tokens: list[Token]) -> Meeting:
    meeting = Meeting(step, tokens)
    if not state.forks:
        return meeting
    for fork_id, branches in {place for token in tokens for place in token.lineage.items()}:
        fork = state.forks.get(fork_id)
        if fork is not None:
            meeting.missing |= set(_coming(plan, state, step, fork, branches))
    if meeting.missing:
        meeting.verdict = "wait"
    return meeting


def _coming(plan: Plan, state: Execution, step: str, fork: Split, branches: frozenset[int]) -> Iterator[str]:
    for carrier in fork.carriers:
        token = state.tokens.get(carrier)
        holder = token or state.runs.get(carrier)
        if holder is None or holder.lineage[fork.fork_id] & branches:
            continue
        if token is not None and token.step == step:
            continue  # it has arrived
        if _reaches(plan, state, holder.step, step, fork, holder.lineage):
            yield carrier


def _reaches(plan: Plan, state: Execution, source: str, target: str, fork: Split, lineage: Lineage) -> bool:
    if not plan.reaches(source, target, fork.router):
        return False
    ends = {step for fork_id, mine in lineage.items() for step in _spent(state.forks.get(fork_id), mine)}
    return not ends or plan.reaches_around(source, target, frozenset({fork.router, *ends}))


def _spent(fork: Split | None, branches: frozenset[int]) -> Iterator[str]:
    for step, winners in fork.spent.items() if fork is not None else ():
        if not winners & branches:
            yield step


def _some(plan: Plan, state: Execution, step: str, tokens: list[Token], needed: int) -> Iterator[Meeting]:
    rest: list[Token] = []
    for token in sorted(tokens, key=lambda token: token.seq):
        if any(step in _spent(state.forks.get(fork), branches) for fork, branches in token.lineage.items()):
            yield Meeting(step, [token], "absorb")
        else:
            rest.append(token)
    for group in _groups(rest):
        if needed <= 1:
            yield Meeting(step, group[:1])
            continue
        yield _counted(plan, state, step, group, needed)


def _counted(plan: Plan, state: Execution, step: str, group: list[Token], needed: int) -> Meeting:
    meeting = Meeting(step, group, "wait", needed=needed)
    possible = 0
    for fork_id in merged_lineage(group):
        chosen: list[Token] = []
        seen: frozenset[int] = frozenset()
        for token in group:
            if fork_id in token.lineage and len(seen) < needed:
                chosen.append(token)
                seen |= token.lineage[fork_id]
        meeting.arrived = max(meeting.arrived, len(seen))
        if len(seen) >= needed:
            return Meeting(step, chosen, "go")
        fork = state.forks[fork_id]
        coming = set(_coming(plan, state, step, fork, seen))
        meeting.missing |= coming
        for carrier in coming:
            seen |= (state.tokens.get(carrier) or state.runs[carrier]).lineage[fork_id]
        possible = max(possible, len(seen))
    meeting.arrived = max(meeting.arrived, 1)
    if possible < needed:
        meeting.verdict = "fail" if not meeting.missing else "wait"
    return meeting
