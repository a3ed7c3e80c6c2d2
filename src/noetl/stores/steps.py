"""Tells the most usual batch from all others: one report that ends a piece of work and brings the next to whoever asks.

Such a batch leaves the row of its execution as it is, and is one row of the log, so a database can write it in fewer
statements. Does no I/O. Tested in tests/conformance/test_steps.py.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from noetl.model.work import Lease
from noetl.ports import Claim, Commit, Committed, Receipt
from noetl.stores.batch import Changes

MOST_EVENTS = 500  # of one row of the log: whoever reads a page decodes no more than two
_MOST_ROWS = 4_096  # that are remembered


class Written:
    """Rows of executions as this process wrote them: one that would stay as it is need not be written again."""

    def __init__(self) -> None:
        self._rows: OrderedDict[str, tuple[int, Mapping[str, Any]]] = OrderedDict()

    def unchanged(self, last_seqs: Mapping[str, int], changes: Changes) -> set[str]:
        """Give the executions whose row says the same after a batch: nobody has written it since, or the batch is refused."""
        return {
            name
            for name, projection in changes.projections.items()
            if (known := self._rows.get(name)) is not None and known[0] == last_seqs[name] and known[1] == projection
        }

    def says(self, commit: Commit) -> bool:
        """Tell whether the row of a commit's execution says the same already."""
        known = self._rows.get(commit.execution_id)
        return known is not None and known[0] == commit.expected_seq and known[1] == commit.projection

    def took(self, commits: Sequence[Commit]) -> None:
        """Note plain commits that were applied."""
        for commit in commits:
            self._keep(commit.execution_id, commit.expected_seq + len(commit.events), commit.projection)

    def note(self, changes: Changes) -> None:
        """Note what a batch has written."""
        for name, projection in changes.projections.items():
            self._keep(name, changes.last_seqs[name], projection)

    def _keep(self, name: str, last_seq: int, projection: Mapping[str, Any]) -> None:
        rows = self._rows
        if "ended_at" in projection:
            rows.pop(name, None)
            return
        rows[name] = (last_seq, projection)
        rows.move_to_end(name)
        if len(rows) > _MOST_ROWS:
            rows.popitem(last=False)


def are_plain(commits: Sequence[Commit]) -> bool:
    """Tell whether a batch only adds events, ends leased work and brings new: to each of its executions once.

    It is applied whole where the log of each is as long as expected, and the work is leased as they say.
    """
    for commit in commits:
        if not commit.events or not commit.projection or commit.held or commit.dropped or commit.timers:
            return False
        if commit.cleared or commit.inbox or commit.consumed or commit.letters or len(commit.events) > MOST_EVENTS:
            return False
    return len(commits) == 1 or len({commit.execution_id for commit in commits}) == len(commits)


def next_holder(commit: Commit, claims: Sequence[Claim]) -> int | None:
    """Give the place of the claim that is served by what a report brings; None where the commit is no such step.

    All who ask with it ask for work of one pool, the same.
    """
    if len(commit.work) != 1 or len(commit.finished) != 1 or not commit.events or not commit.expected_seq:
        return None
    if commit.held or commit.dropped or commit.timers or commit.cleared or commit.inbox or commit.consumed:
        return None
    item = commit.work[0]
    if item.available_at or item.work_id == commit.finished[0][0] or commit.audit or commit.letters:
        return None
    for place, claim in enumerate(claims):
        if claim.most > 0 and item.pool in claim.pools and (not item.requires or set(item.requires) <= set(claim.tags)):
            is_step = item.execution_id == commit.execution_id and len(commit.events) <= MOST_EVENTS
            return place if is_step and _of_one_pool(claims) else None
    return None


def _of_one_pool(claims: Sequence[Claim]) -> bool:
    pools = claims[0].pools
    return len(pools) == 1 and (len(claims) == 1 or all(claim.pools == pools for claim in claims))


def done(commit: Commit, claims: Sequence[Claim], place: int, lease: Lease) -> Receipt:
    """Tell what became of a step that was applied, and who has its new work."""
    leases = ((lease,),) if len(claims) == 1 else tuple([(lease,) if n == place else () for n in range(len(claims))])
    return Receipt((Committed(commit.execution_id, "applied", commit.expected_seq + len(commit.events)),), leases)
