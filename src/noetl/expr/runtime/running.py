"""The evaluation in progress, as a watchdog of the process sees it.

Tested in tests/unit/wiring/test_watchdog.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Final

from noetl.expr.runtime.budget import Budget

_DELIVERY: Final = ContextVar("delivery", default="")


class EndedProcesses(Exception):  # noqa: N818 - an outcome, shown in dead letters
    """A template of this delivery ended processes: it is not evaluated again."""

    def __init__(self, template: str) -> None:
        super().__init__(f"evaluating a template ended the processes that tried: `{template}`")


class Running:
    """The evaluation in progress, and the delivery that it is for."""

    def __init__(self) -> None:
        self._budget: Budget | None = None
        self._note: Callable[[str, str], None] | None = None
        self._refused: Mapping[str, str] = {}

    @property
    def budget(self) -> Budget | None:
        """The budget of the evaluation in progress, if there is one."""
        return self._budget

    def watch(self, note: Callable[[str, str], None] | None, refused: Mapping[str, str]) -> None:
        """Call `note` with delivery and template at each evaluation, empty at its end."""
        self._note, self._refused = note, refused

    def begin(self, delivery: str) -> None:
        """Name the delivery that the next evaluations are for. Raises EndedProcesses."""
        if delivery in self._refused:
            raise EndedProcesses(self._refused[delivery])
        _DELIVERY.set(delivery)

    def enter(self, budget: Budget, template: str) -> None:
        """Begin an evaluation."""
        self._budget = budget
        if self._note is not None:
            self._note(_DELIVERY.get(), template)

    def leave(self) -> None:
        """End an evaluation."""
        self._budget = None
        if self._note is not None:
            self._note("", "")


RUNNING: Final = Running()
