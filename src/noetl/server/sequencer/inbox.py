"""The sequencer's inbox: messages in order of arrival, and waiting workers.

Data and rules of order, no I/O. Nothing outside of these classes writes their fields. Tested in
tests/unit/server/sequencer/test_inbox.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from noetl.engine.decision.evaluations import Answer
from noetl.engine.state.execution import Execution
from noetl.model.commit import Intake
from noetl.model.messages import AnyMessage, Start
from noetl.model.work import Lease, WorkItem, asked_work
from noetl.ports import Audit, Claim, Commit
from noetl.ports.work import Deliver, Reply

Kind = tuple[str, tuple[str, ...]]  # of work: its pool, and the tags that it requires
Takes = tuple[tuple[str, ...], tuple[str, ...]]  # pools and tags of a worker
_DRY_MS = 1_000  # how long the queue is assumed to be empty without a new look


class Entry(Struct, eq=False):
    """Message in the sequencer; `reply` is called once, after the commit."""

    execution_id: str
    message: AnyMessage
    reply: Reply | None = None  # None: the system sent it, or the caller is gone
    act: Audit = None  # who sent it, for the audit log
    takes: Takes | None = None  # of a worker that reports
    want: int = 0  # how much new work the report asks for, until it was served
    leases: list[Lease] = []  # what it was served
    is_own: bool = False  # the system sent it to itself, and the store keeps it until it is applied
    refused: bool = False  # it was decided on a state that is not in the store, or may not be
    late: bool = False  # the store fenced it: the lease was gone
    alone: bool = False  # a batch with it could not be written: it is retried alone
    tries: int = 0
    resolved: Mapping[str, Any] = {}  # what was loaded for its decision
    answers: tuple[Execution, int, Sequence[Answer]] | None = None  # of its templates, in a state with a seq
    rounds: int = 0  # how often its templates were evaluated apart
    trouble: Exception | None = None  # why that could not be loaded
    intake: Intake | None = None  # message of a subscription that it starts an execution for

    @property
    def consumed(self) -> tuple[str, ...]:
        return (self.message.message_id,) if self.is_own else ()

    def abandon(self) -> list[Lease]:
        """Drop the caller; the message applies without new work. Returns its old leases."""
        leases, self.leases = self.leases, []
        self.reply, self.want = None, 0
        return leases

    def take_reply(self) -> Reply | None:
        """Return the reply callback, and forget it: it is called once."""
        reply, self.reply = self.reply, None
        return reply

    def serve(self, leases: Sequence[Lease]) -> None:
        """Take the work that was leased with the report."""
        self.want, self.leases = 0, list(leases)

    def refuse(self, *, late: bool = False, alone: bool = False) -> None:
        """Mark a decision that was not committed: it is made again, from the log."""
        self.refused, self.late, self.alone = True, self.late or late, self.alone or alone
        self.answers = None

    def queue(self, why: str) -> bool:
        """Decide a start again, as one that its limits admit not yet; False for others."""
        if not isinstance(self.message, Start):
            return False
        self.message = replace(self.message, queued=why)
        return True

    def resolve(self, loaded: Mapping[str, Any]) -> None:
        """Take what was loaded for the decision."""
        self.resolved = {**self.resolved, **loaded}

    def answer(self, state: Execution, seq: int, answers: Sequence[Answer]) -> None:
        """Take the answers of its templates in a state, while that has this seq."""
        self.answers = (state, seq, answers)

    def answers_in(self, state: Execution) -> Sequence[Answer]:
        """Return the answers that hold in a state; one that was loaded anew is another."""
        if self.answers is None or self.answers[0] is not state or self.answers[1] != state.seq:
            return ()
        return self.answers[2]

    def count_round(self) -> int:
        """Count that its templates are evaluated apart."""
        self.rounds += 1
        return self.rounds

    def fail(self, error: Exception) -> None:
        """Note that what the decision needs cannot be loaded."""
        self.trouble = error

    def count_try(self) -> int:
        """Count a try that failed since the store is unavailable."""
        self.tries += 1
        return self.tries


class Subscription:
    """A worker that waits for work, or one claim.

    Leases are delivered by a callback while there is capacity; the last `kept` slots are for playbooks that have no work
    leased. With `waits=False` the next look into the queue is the answer, even if it finds nothing.
    """

    __slots__ = (
        *("_deliver", "_kept", "_request", "_withdraw", "capacity", "is_closed", "pools", "tags", "waits", "worker"),
    )

    def __init__(
        self,
        worker: str,
        takes: Takes,
        capacity: int,
        deliver: Deliver,
        request: Callable[[Subscription], None],
        withdraw: Callable[[Subscription], None],
        *,
        waits: bool = True,
        kept: int = 0,
    ) -> None:
        self.worker = worker
        self.pools, self.tags = takes
        self.capacity = capacity
        self.waits = waits
        self.is_closed = False
        self._kept = kept  # slots for playbooks that have no work leased
        self._deliver = deliver
        self._request = request
        self._withdraw = withdraw

    @property
    def is_open(self) -> bool:
        """Whether work is wanted now."""
        return self.capacity > 0

    @property
    def asks(self) -> tuple[int, bool]:
        """How much work is wanted now, and whether only of idle playbooks."""
        return asked_work(self.capacity, self._kept)

    def set_capacity(self, capacity: int) -> None:
        """Set how many more work items may be delivered."""
        had, self.capacity = self.capacity, 0 if self.is_closed else capacity
        if had <= self._kept and self.capacity > max(had, 0):
            self._request(self)

    def deliver(self, leases: Sequence[Lease]) -> None:
        """Deliver leases; the capacity shrinks by as many."""
        self.capacity -= len(leases)
        self._deliver(list(leases))

    def close(self) -> None:
        """Stop deliveries; work that is leased in the meantime returns to the queue."""
        self.capacity, self.is_closed = 0, True
        self._withdraw(self)


class Inbox:
    """Messages in order of arrival, and subscriptions in order of request."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._asking: list[Subscription] = []  # the queue has to be looked into for these
        self._waiting: list[Subscription] = []  # it was, in vain
        self._claiming: list[Subscription] = []  # it is being looked into, with a batch
        self._look = False  # the queue changed by other means than a batch: look for all that wait
        self._dry: dict[Takes, int] = {}  # kinds that the queue has none of → until when that is assumed
        self._has_lonely = False  # an entry among those that were put back must be alone
        self._own: set[str] = set()  # ids of the system's own messages in flight

    @property
    def is_idle(self) -> bool:
        return not self._entries and not self._asking and not (self._look and self._waiting)

    # Messages

    def append(self, entries: Iterable[Entry]) -> None:
        self._entries.extend(entries)

    def take(self, most: int) -> list[Entry]:
        """Take the next batch; an entry that must be alone is a batch of its own."""
        entries = self._entries
        if len(entries) <= most and not self._has_lonely:
            batch = list(entries)
            entries.clear()
            return batch
        batch = []
        while entries and len(batch) < most and not (entries[0].alone and batch):
            batch.append(entries.popleft())
            if batch[0].alone:
                break
        self._has_lonely = self._has_lonely and bool(entries)
        return batch

    def put_back(self, entries: Sequence[Entry]) -> None:
        """Put entries back in front, in their order."""
        self._entries.extendleft(reversed(entries))
        self._has_lonely = self._has_lonely or any(entry.alone for entry in entries)

    def add_own(self, execution_id: str, message: AnyMessage) -> bool:
        """Add a message that the system sent itself; False if it is in flight already."""
        if message.message_id in self._own:
            return False
        self._own.add(message.message_id)
        self._entries.append(Entry(execution_id, message, is_own=True))
        return True

    def forget_own(self, message_id: str) -> None:
        """Note that a message of the system is applied, or was set aside."""
        self._own.discard(message_id)

    # Workers that wait for work

    def request(self, one: Subscription, now: int) -> bool:
        """Add a subscription; returns whether the queue has to be looked into for it."""
        if one.waits and self.is_dry((one.pools, one.tags), now):
            if one not in self._waiting:
                self._waiting.append(one)
            return False
        if one not in self._asking:
            self._asking.append(one)
        return True

    def withdraw(self, one: Subscription) -> None:
        """Remove a subscription."""
        self._asking = [other for other in self._asking if other is not one]
        self._waiting = [other for other in self._waiting if other is not one]

    def withdraw_all(self) -> list[Subscription]:
        """Remove and return all subscriptions."""
        removed, self._asking, self._waiting = [*self._asking, *self._waiting, *self._claiming], [], []
        return list(dict.fromkeys(removed))

    def look(self) -> None:
        """Check the queue for all waiting subscriptions."""
        self._look = True
        self._dry.clear()

    def doubt(self) -> None:
        """Discard what is known about the queue: it may hold writes unseen here."""
        self._dry.clear()

    def is_dry(self, takes: Takes, now: int) -> bool:
        """Return whether the queue is known to hold nothing for a worker."""
        return bool(self._dry) and self._dry.get(takes, 0) > now

    def choose(self, first: Sequence[Claim], commits: Iterable[Commit], now: int) -> list[Subscription]:
        """Choose which subscriptions claim with a batch.

        These are the new ones, and as many waiting ones as the batch's work suffices for. The reporters in the batch
        are served `first`.
        """
        chosen, self._asking = self._asking, []
        if self._look:
            chosen = chosen + self._waiting
            self._look = False
        elif self._waiting:
            chosen = chosen + self._beside([*first, *chosen], commits, now)
        self._claiming = [one for one in dict.fromkeys(chosen) if one.is_open] if chosen else []
        return self._claiming

    def _beside(self, first: Iterable[Subscription | Claim], commits: Iterable[Commit], now: int) -> list[Subscription]:
        """Choose waiting subscriptions for the new work; `first` ones are served before."""
        fresh: dict[Kind, int] = {}
        for commit in commits:
            for item in commit.work:
                if item.available_at <= now:
                    kind = (item.pool, item.requires)
                    fresh[kind] = fresh.get(kind, 0) + 1
        if not fresh:
            return []
        for one in first:
            _takes(one, fresh)
        if not any(fresh.values()):
            return []
        return [one for one in self._waiting if _takes(one, fresh) and one.is_open]

    def claim_again(self, chosen: Sequence[Subscription]) -> None:
        """Retry claims with the next batch, since this one was not written."""
        self._waiting = [one for one in self._waiting if one not in chosen]
        self._asking[:0] = chosen
        self._claiming = []

    def served(
        self, chosen: Sequence[Subscription], claims: Sequence[Claim], leases: Sequence[Sequence[Lease]]
    ) -> None:
        """Note which subscriptions still wait, and which kinds of work the queue lacks."""
        self._claiming = []
        if not chosen:
            return
        full, fed = list[Subscription](), list[Subscription]()
        for one, claim, found in zip(chosen, claims, leases, strict=True):
            is_full = len(found) >= claim.most
            if is_full and one.is_open:  # it has more capacity than it claimed, and there may be more
                full.append(one)
            elif found:
                fed.append(one)
            if not self._look and not claim.is_for_idle:  # else the queue has changed, or has work for others
                self._dry[claim.pools, claim.tags] = 0 if is_full else claim.now + _DRY_MS
        waiting = [one for one in dict.fromkeys([*self._waiting, *chosen]) if one.waits and one.is_open]
        if fed:  # one that was served comes after the others
            waiting.sort(key=fed.__contains__)
        self._waiting = [one for one in waiting if one not in full] if full else waiting
        self._asking += [one for one in full if one.waits and one not in self._asking]

    def note_left(self, work: Iterable[WorkItem]) -> None:
        """Check the queue again if a batch left work for a waiting subscription."""
        if not self._waiting and not self._dry:
            return
        kinds = {(item.pool, item.requires) for item in work}
        if kinds:
            self._dry.clear()
        if any(fits(one, *kind) for kind in kinds for one in self._waiting if not one.asks[1]):
            self._look = True


def fits(one: Subscription | Claim, pool: str, requires: tuple[str, ...]) -> bool:
    """Return whether a worker takes work of this kind."""
    return pool in one.pools and (not requires or set(requires).issubset(one.tags))


def _takes(one: Subscription | Claim, fresh: dict[Kind, int]) -> bool:
    """Deduct a worker's work from the new work; return whether there was any."""
    most = one.asks[0] if isinstance(one, Subscription) else one.most
    wanted = most
    for kind, count in fresh.items():
        if count and fits(one, *kind):
            taken = min(wanted, count)
            fresh[kind] -= taken
            wanted -= taken
    return wanted < most


def backoff(entries: Iterable[Entry]) -> float:
    """Return the seconds to wait for an unavailable store: grows up to a limit."""
    tries = max((entry.tries for entry in entries), default=0)
    return min(0.02 * 2.0**tries, 2.0)
