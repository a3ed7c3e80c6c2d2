"""The evaluation in progress, as a watchdog of the process sees it.

A caller that shares its thread with others has long evaluations paused. Tested in tests/unit/wiring/test_watchdog.py and
tests/unit/worker/test_cooperative.py.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from contextvars import ContextVar
from functools import partial
from typing import Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import Budget

SHOWN: Final = 500  # characters of a template that are noted
SLICE: Final = 5_000  # operations between two pauses: about a millisecond
_EXECUTION: Final = ContextVar("execution", default="")


class Running:
    """The evaluation in progress, and the execution that it is for."""

    def __init__(self) -> None:
        self._budget: Budget | None = None
        self._note: Callable[[str, str], None] | None = None
        self._refused: Set[tuple[str, str]] = frozenset()
        self._pause: Callable[[], object] | None = None
        self._left = SLICE  # operations up to the next pause
        self._number = 0

    @property
    def budget(self) -> Budget | None:
        """The budget of the evaluation in progress, if there is one."""
        return self._budget

    @property
    def number(self) -> int:
        """The number of the evaluation or slice in progress, or of the last one."""
        return self._number

    def watch(self, note: Callable[[str, str], None] | None, refused: Set[tuple[str, str]]) -> None:
        """Call `note` with execution and template at each evaluation, empty at its end.

        A template that is refused in an execution ended processes: it is not evaluated there again.
        """
        self._note, self._refused = note, refused

    def begin(self, execution_id: str) -> None:
        """Name the execution that the next evaluations are for."""
        _EXECUTION.set(execution_id)

    def divide(self, pause: Callable[[], object] | None) -> None:
        """Call `pause` at each slice of the next evaluations; None ends that."""
        self._pause, self._left = pause, SLICE

    def enter(self, budget: Budget, template: str) -> None:
        """Begin an evaluation. Raises EvaluationError if the template is refused."""
        self._show(budget, template)
        if self._pause is not None:
            budget.divide(self._left, SLICE, partial(self._paused, budget, template))

    def leave(self, budget: Budget) -> None:
        """End an evaluation."""
        self._hide()
        if self._pause is not None:
            self._left = min(SLICE, max(budget.operations_left, 1))

    def _paused(self, budget: Budget, template: str) -> None:
        if self._pause is not None:
            self._hide()
            self._pause()
            self._show(budget, template)

    def _show(self, budget: Budget, template: str) -> None:
        if self._note is not None:
            execution_id, template = _EXECUTION.get(), template[:SHOWN]
            if (execution_id, template) in self._refused:
                raise EvaluationError(
                    f"evaluating `{template}` ended the processes that tried; it is not tried again in this execution"
                )
            self._note(execution_id, template)
        self._number += 1
        self._budget = budget

    def _hide(self) -> None:
        self._budget = None
        if self._note is not None:
            self._note("", "")


RUNNING: Final = Running()
