"""Poison messages: their event, their letter, retries and discards."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.handlers.poison import poisoned
from noetl.engine.queries.recall import recalled
from noetl.model.errors import Undecided
from noetl.model.events import Event
from noetl.model.letters import DeadLetter
from noetl.model.messages import AnyMessage, Discard, Redrive, Signal, TimerDue
from tests.unit.engine.given import book, done
from tests.unit.engine.handlers.test_redrive import Replaying

ONE = book("  - {step: one, tool: {kind: noop}}\n", "executor: {spec: {timeout_s: 60}}\n")


class Poisoned(Replaying):
    """A log with a message that could not be decided."""

    def meets(self, message: AnyMessage, text: str = "a mistake") -> Event:
        self.at += 1
        event = poisoned(self.log, message, ValueError(text), "Traceback …", self.at)
        if event.event_id not in {known.event_id for known in self.log}:
            self.log.append(event)
        return event

    def again(self, name: str = "replay") -> Any:
        return self.when(Redrive(name, tuple(recalled(self.log, self.letters().values()).values()), by="ada"))


def lettered(message: AnyMessage) -> tuple[Poisoned, DeadLetter]:
    found = Poisoned(ONE, ())
    found.meets(message)
    return found, found.letter()


def test_a_letter_tells_all_and_hides_secrets() -> None:
    _, letter = lettered(done("one#1", {"api_key": "s3cret77", "n": 1}))
    assert (letter.reason, letter.step_id, letter.run_id) == ("poison_message", "one", "message:done-one#1-1")
    assert letter.payload["ending"]["result"] == {"api_key": "(masked secret)", "n": 1}
    assert letter.last_error == "a Report cannot be decided: ValueError: a mistake"
    assert (letter.last_stack, letter.path) == ("Traceback …", "tests/test")
    assert "step.scheduled" in letter.context_excerpt


def test_the_same_message_is_one_event_until_it_is_replayed() -> None:
    found, letter = lettered(Signal("s", "go"))
    found.meets(Signal("s", "go"), "another mistake")
    assert found.letter() == letter
    found.again()
    assert found.letter().status == "replaying"
    assert found.decision.inbox == (("9000", Signal("s", "go")),)
    found.meets(Signal("s", "go"))
    again = found.letter()
    assert (again.status, again.attempts, again.replays, again.first_seen) == ("pending", 2, 1, letter.first_seen)


def test_a_message_that_is_decided_after_all_closes_its_letter() -> None:
    for replays in (False, True):
        found, _ = lettered(Signal("s", "go"))
        if replays:
            found.again()
        found.when(Signal("s", "go")).then("signal.received go", "message.settled")
        assert found.letter().status == "replayed"
        found.when(Signal("t", "go")).then("signal.received go")


def test_a_message_that_was_applied_meanwhile_is_not_sent_again() -> None:
    found, _ = lettered(done("one#1"))
    late = found.state
    found.when(done("one#1"))
    del found.log[-1]  # as if the letter had stayed open
    assert late.letters
    found.again()
    assert (found.decision.inbox, found.letter().status) == ((), "replayed")


def test_a_timer_is_set_again_for_the_time_that_it_had() -> None:
    found = Poisoned(ONE, ())
    [(name, timer)] = found.state.timers.items()
    found.meets(TimerDue(f"timer:{name}:{timer.at}", name))
    found.again()
    assert (found.decision.timers, found.decision.inbox) == (((name, timer.at),), ())
    found.when(TimerDue(f"timer:{name}:{timer.at}", name))
    assert (found.letter().status, found.state.status) == ("replayed", "failed")
    found.log[-1:] = []
    gone = Poisoned(ONE, (done("one#1"),))
    gone.meets(TimerDue("timer:x:1", "x"))
    gone.again()
    assert (gone.decision.timers, gone.letter().status) == ((), "replayed")


def test_what_was_discarded_is_refused_until_the_end() -> None:
    found, letter = lettered(Signal("s", "go"))
    found.when(Discard("d", ((letter.step_id, letter.run_id, None),), "a mistake of the sender", "ada"))
    assert found.letter().status == "discarded"
    with pytest.raises(Undecided, match="discarded"):
        found.when(Signal("s", "go"))
    found.when(done("one#1"))
    found.when(Signal("s", "go")).then()
