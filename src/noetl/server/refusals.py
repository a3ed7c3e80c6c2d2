"""What becomes of a message that cannot be decided or written: whoever sent it is told, and a dead letter keeps it.

A message that the system sent itself stays in the store too, set aside here: a process that can decide it does so when it
starts. Whoever asks for what cannot be is told and no more: no letter is kept of bad input, nor where the store is away or
the execution belongs to a newer version. Tested in tests/conformance/test_poison.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from traceback import format_exception
from typing import Final

from msgspec.structs import replace

from noetl.engine.dead_letters import change_of, letter_id, of_message
from noetl.engine.decision import projection
from noetl.engine.evolve import fold
from noetl.engine.poison import poisoned
from noetl.model.errors import Conflict, Foreign, NoetlError, StoreUnavailable, Undecided
from noetl.model.events import Event
from noetl.model.messages import ChildEnded, Discard, Mend, Replay, Start, TimerDue
from noetl.ports import Clock, Commit, EventLog
from noetl.server.handed import Handed
from noetl.server.inbox import Entry, Inbox
from noetl.server.room import Room

_log = logging.getLogger(__name__)
_MOST_TRIES: Final = 5  # where others commit to the same execution meanwhile
_AGAIN_MS: Final = 10_000  # a timer that cannot be decided is due all the time, and told of this often
_REMEMBERED: Final = 1_000
_BAD_INPUT: Final = (NoetlError, RecursionError, OverflowError)  # of whoever asked
_NOT_POISON: Final = (StoreUnavailable, Foreign, Conflict, Undecided)
_NO_LETTER: Final = (Replay, Discard, Mend)  # sent again by whoever sent it


class Refusals:
    """Tells of messages that are refused, and keeps those that nobody would miss otherwise."""

    note: Callable[[Commit], None]  # what is done after a letter was written

    def __init__(
        self, log: EventLog, inbox: Inbox, room: Room[Entry], handed: Handed, clock: Clock, keeps: bool
    ) -> None:
        self.set_aside: set[str] = set()  # messages of the system that this process cannot decide
        self._store = log
        self._inbox = inbox
        self._room = room
        self._handed = handed
        self._clock = clock
        self._keeps = keeps  # letters
        self._told: dict[str, int] = {}  # message → when

    async def give_up(self, entry: Entry, error: Exception, *, is_decided: bool) -> None:
        """Keep a message that cannot be decided as a dead letter, and tell whoever sent it. Raises StoreUnavailable.

        One that is decided and cannot be written is kept too, but for an act of somebody: what cannot be noted is not done.
        """
        is_act = is_decided and entry.act is not None
        if not is_act and self._is_poison(entry, error) and await self._kept(entry, error):
            letter = letter_id(entry.execution_id, of_message(entry.message.message_id), None)
            what = type(entry.message).__name__
            error = Undecided(f"the server could not decide a {what}; it waits: `noetl dlq show {letter}`")
        elif not isinstance(error, NoetlError):
            _log.error("a message of execution %s cannot be decided", entry.execution_id, exc_info=error)
        self.tell(entry, error)

    def forget(self) -> None:
        """Tell of every message again: somebody acted on dead letters."""
        self._told.clear()

    def tell(self, entry: Entry, error: Exception) -> None:
        """Tell whoever sent a message that it is refused; one of the system's own is set aside."""
        if not entry.is_own:
            if entry.answer is not None and not entry.answer.done():
                entry.answer.set_exception(error)
            self.send_back(entry)
            return
        name = entry.message.message_id  # nobody asked: it stays in the store for a process that can decide it
        self._inbox.sent.discard(name)
        self.set_aside.add(name)
        _log.error("message %s of execution %s is set aside: %s", name, entry.execution_id, error)

    def send_back(self, entry: Entry) -> None:
        """Let a worker that is told by a call send its report the usual way, which tells what is wrong with it."""
        if entry.told is not None:
            self._room.leave(entry)
            self._handed.give_back(entry.leases)
            entry.told(None)

    @staticmethod
    def _is_poison(entry: Entry, error: Exception) -> bool:
        if isinstance(error, _NOT_POISON) or isinstance(entry.message, _NO_LETTER):
            return False
        is_own = entry.is_own or isinstance(entry.message, TimerDue)
        return is_own or not isinstance(error, _BAD_INPUT)

    async def _kept(self, entry: Entry, error: Exception) -> bool:
        """Keep a message, or know that it is kept; tells whether it is."""
        name, now = entry.message.message_id, self._clock.now()
        if now - self._told.get(name, -_AGAIN_MS) < _AGAIN_MS:
            return True
        what = (type(entry.message).__name__, entry.execution_id)
        try:
            kept = await self._keep(entry, error)
        except StoreUnavailable:
            raise
        except Exception as problem:  # noqa: BLE001  one message must not end the server
            _log.exception("a %s of execution %s cannot be kept", *what, exc_info=problem)
            return False
        if kept:
            _log.error("deciding a %s of execution %s failed; a dead letter waits", *what, exc_info=error)
            self._told[name] = now
        if len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        return kept

    async def _keep(self, entry: Entry, error: Exception) -> bool:
        for _ in range(_MOST_TRIES):
            events = await self._store.read(entry.execution_id)
            for commit in _commits(entry, events if self._keeps else (), error, self._clock.now()):
                try:
                    [verdict] = (await self._store.commit([commit])).commits
                except StoreUnavailable:
                    raise
                except Exception as problem:  # noqa: BLE001  it holds what cannot be written: the next holds less
                    _log.warning("a dead letter of %s is written without it: %s", entry.message.message_id, problem)
                    continue
                if verdict.status == "applied":
                    self.note(commit)
                if verdict.status in ("applied", "duplicate"):
                    return bool(commit.events)
                break  # others were first: look again
        return False


def _commits(entry: Entry, events: Sequence[Event], error: Exception, at: int) -> list[Commit]:
    """Give what keeps a message: a letter with all of it, or without what cannot be written; or a word to its parent."""
    message = entry.message
    if not events:
        start = message if isinstance(message, Start) and message.parent is not None else None
        return [_no_child(entry, start, error)] if start is not None else []
    stack = "".join(format_exception(error))
    whole = poisoned(events, message, error, stack, at)
    text = repr(message)[:2_000].encode(errors="replace").decode()
    rest = {name: value for name, value in whole.payload.items() if name != "message"}
    less = replace(whole, payload={**rest, "letter": {**rest["letter"], "payload": {"text": text}}})
    return [_commit_of(events, event) for event in (whole, less)]


def _commit_of(events: Sequence[Event], event: Event) -> Commit:
    path = str(events[0].payload.get("path", ""))
    change = change_of(path, event)
    try:
        row = projection(fold(event.execution_id, [*events, event]))
    except Exception:  # noqa: BLE001  that may be why it cannot be decided; the row stays as it is
        row = {}
    return Commit(event.execution_id, events[-1].seq, (event,), projection=row, letters=(change,) if change else ())


def _no_child(entry: Entry, start: Start, error: Exception) -> Commit:
    """Tell a parent that its child cannot be started."""
    parent = start.parent or {}
    text = f"the child cannot be started: {type(error).__name__}: {error}"
    told = {"kind": "unknown", "code": "POISON_MESSAGE", "message": text, "retryable": False}
    word = ChildEnded(
        f"{start.message_id}/unknown", str(parent.get("run_id")), entry.execution_id, "failed", None, told
    )
    return Commit(entry.execution_id, 0, (), inbox=((str(parent.get("execution_id")), word),), consumed=entry.consumed)
