"""Given events, when a message comes, then these events follow.

    given(playbook, *messages).when(message).then("step.done one", …)

A line of `then` is an event's type, alone or with the entity it is about.
"""

from __future__ import annotations

from typing import Any

from noetl.engine.handlers.decide import Decision
from noetl.engine.plan.plan import plan
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution, checksum
from noetl.model.events import Event
from noetl.model.messages import AnyMessage, Ending, Report, Start
from noetl.testing.play import BEGIN, decided, read

HEAD = """
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: test, path: tests/test}
"""


def book(workflow: str, head: str = "") -> str:
    """Return the text of a playbook around a workflow."""
    return f"{HEAD}{head}\nworkflow:\n{workflow}"


def done(run_id: str, result: Any = None, epoch: int = 1, **more: Any) -> Report:
    return Report(f"done-{run_id}-{epoch}", run_id, epoch, "w1", ending=Ending("ok", result), **more)


def broke(run_id: str, kind: str = "server_error", message: str = "it broke", epoch: int = 1) -> Report:
    error = {"kind": kind, "message": message, "retryable": False}
    return Report(f"broke-{run_id}-{epoch}", run_id, epoch, "w1", ending=Ending("error", None, error))


class Given:
    """A log, and what follows from one more message."""

    def __init__(self, text: str, messages: tuple[AnyMessage, ...], payload: dict[str, Any] | None = None) -> None:
        self.plan = plan(read(text), "hash")
        self.log: list[Event] = []
        self.decision = Decision("9000", 0)
        self.at = BEGIN
        for message in (Start("start", "tests/test", "hash", payload or {}), *messages):
            self.when(message)

    @property
    def state(self) -> Execution:
        """The fold of the log: nothing here depends on a state that was kept."""
        return fold("9000", self.log)

    def when(self, message: AnyMessage) -> Given:
        state = self.state
        self.at += 1
        self.decision = decided(self.plan, state, message, self.at)
        self.log += self.decision.events
        assert checksum(self.state) == checksum(state)
        return self

    def then(self, *expected: str) -> Given:
        found = [
            event.event_type if " " not in line else f"{event.event_type} {event.entity_id}"
            for event, line in zip(self.decision.events, [*expected, *[""] * len(self.decision.events)], strict=False)
        ]
        assert found == list(expected)
        return self

    def last(self, event_type: str) -> Event:
        return next(event for event in reversed(self.log) if event.event_type == event_type)


def given(text: str, *messages: AnyMessage, payload: dict[str, Any] | None = None) -> Given:
    return Given(text, messages, payload)
