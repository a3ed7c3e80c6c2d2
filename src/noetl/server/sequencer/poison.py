"""Poison messages: kept as dead letters, so that they block no other.

A poison message cannot be decided or written. One that the system sent itself also stays in the store, set aside here:
a process that can decide it does so when it starts. No letter is kept of bad input, nor if the store is unavailable or
the execution belongs to a newer version. Tested in tests/conformance/test_poison.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from traceback import format_exception
from typing import Final

from msgspec.structs import replace

from noetl.engine.decision.builder import projection
from noetl.engine.handlers.poison import poisoned
from noetl.engine.state.dead_letters import change_of, letter_id, of_message
from noetl.engine.state.evolve import fold
from noetl.model.errors import Conflict, Foreign, NoetlError, StoreUnavailable, Undecided
from noetl.model.events import Event
from noetl.model.messages import Discard, Mend, Redrive, Start, TimerDue
from noetl.ports import Clock, Commit, EventLog, Receipt
from noetl.server.sequencer.apart import TooHeavy
from noetl.server.sequencer.commits import child_ended
from noetl.server.sequencer.inbox import Entry

_log = logging.getLogger(__name__)
_MOST_TRIES: Final = 5  # tries, if others commit to the same execution concurrently
_LOG_AGAIN_MS: Final = 10_000  # a timer that cannot be decided is due all the time, and kept and logged this often
_MOST_KEPT: Final = 1_000
_BAD_INPUT: Final = (NoetlError, RecursionError, OverflowError)  # the sender's mistake
_NOT_POISON: Final = (StoreUnavailable, Foreign, Conflict, Undecided)
_NO_LETTER: Final = (Redrive, Discard, Mend)  # their sender sends them again


class PoisonHandler:
    """Keeps poison messages as dead letters, and remembers which are set aside."""

    def __init__(self, log: EventLog, clock: Clock, applied: Callable[[Commit], None], *, keeps: bool) -> None:
        self._store = log
        self._clock = clock
        self._applied = applied  # called with the commit that wrote a letter
        self._keeps = keeps  # letters
        self._kept: dict[str, int] = {}  # message → when it was kept
        self._set_aside: set[str] = set()  # the system's own messages that this process cannot decide

    @property
    def set_aside(self) -> frozenset[str]:
        """The system's own messages that stay in the store for another process."""
        return frozenset(self._set_aside)

    def put_aside(self, entry: Entry, error: Exception) -> None:
        """Leave a message of the system in the store, for a process that can decide it."""
        self._set_aside.add(entry.message.message_id)
        text = "message %s of execution %s is set aside: %s"
        _log.error(text, entry.message.message_id, entry.execution_id, error)

    def forget(self) -> None:
        """Keep every message again: dead letters were acted on."""
        self._kept.clear()

    async def keep(self, entry: Entry, error: Exception, *, is_decided: bool) -> Exception:
        """Keep a message as a dead letter if it is poison; return the sender's error.

        A message that is decided and cannot be written is kept too, unless it is an audited act: an act that cannot be
        audited is not done. Raises StoreUnavailable.
        """
        is_act = is_decided and entry.act is not None
        if not is_act and _is_poison(entry, error) and await self._keep_once(entry, error):
            letter = letter_id(entry.execution_id, of_message(entry.message.message_id), None)
            what = type(entry.message).__name__
            return Undecided(f"the server could not decide a {what}; it waits: `noetl dlq show {letter}`")
        if not isinstance(error, NoetlError):
            _log.error("a message of execution %s cannot be decided", entry.execution_id, exc_info=error)
        return error.refusal if isinstance(error, TooHeavy) else error

    async def _keep_once(self, entry: Entry, error: Exception) -> bool:
        """Keep a message unless it was kept a moment ago; returns whether it is kept."""
        name, now = entry.message.message_id, self._clock.now()
        if now - self._kept.get(name, -_LOG_AGAIN_MS) < _LOG_AGAIN_MS:
            return True
        what = (type(entry.message).__name__, entry.execution_id)
        try:
            is_kept = await self._write(entry, error)
        except StoreUnavailable:
            raise
        except Exception as problem:  # noqa: BLE001  one message must not end the server
            _log.exception("a %s of execution %s cannot be kept", *what, exc_info=problem)
            return False
        if is_kept:
            _log.error("deciding a %s of execution %s failed; it is a dead letter now", *what, exc_info=error)
            self._kept[name] = now
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return is_kept

    async def _write(self, entry: Entry, error: Exception) -> bool:
        for _ in range(_MOST_TRIES):
            events = await self._store.read(entry.execution_id)
            for commit in _commits(entry, events if self._keeps else (), error, self._clock.now()):
                try:
                    receipt = self._store.commit([commit])
                    [verdict] = (receipt if isinstance(receipt, Receipt) else await receipt).commits
                except StoreUnavailable:
                    raise
                except Exception as problem:  # noqa: BLE001  it holds what cannot be written: the next holds less
                    _log.warning("a dead letter of %s is written without it: %s", entry.message.message_id, problem)
                    continue
                if verdict.status == "applied":
                    self._applied(commit)
                if verdict.status in ("applied", "duplicate"):
                    return bool(commit.events)
                break  # another writer was first: read again
        return False


def _is_poison(entry: Entry, error: Exception) -> bool:
    if isinstance(error, _NOT_POISON) or isinstance(entry.message, _NO_LETTER):
        return False
    is_own = entry.is_own or isinstance(entry.message, TimerDue)
    return is_own or not isinstance(error, _BAD_INPUT)


def _commits(entry: Entry, events: Sequence[Event], error: Exception, at: int) -> list[Commit]:
    """Return alternative commits that keep a message, the most complete first."""
    message = entry.message
    if not events:
        if not isinstance(message, Start) or message.parent is None:
            return []
        text = f"the child cannot be started: {type(error).__name__}: {error}"
        failure = {"kind": "unknown", "code": "POISON_MESSAGE", "message": text, "retryable": False}
        return [child_ended(entry, message, failure)]
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
