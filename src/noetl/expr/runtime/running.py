"""The evaluation in progress, as a watchdog of the process sees it.

Tested in tests/unit/wiring/test_watchdog.py.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from contextvars import ContextVar
from typing import Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import Budget

SHOWN: Final = 500  # characters of a template that are noted
_EXECUTION: Final = ContextVar("execution", default="")


class Running:
    """The evaluation in progress, and the execution that it is for."""

    def __init__(self) -> None:
        self._budget: Budget | None = None
        self._note: Callable[[str, str], None] | None = None
        self._refused: Set[tuple[str, str]] = frozenset()

    @property
    def budget(self) -> Budget | None:
        """The budget of the evaluation in progress, if there is one."""
        return self._budget

    def watch(self, note: Callable[[str, str], None] | None, refused: Set[tuple[str, str]]) -> None:
        """Call `note` with execution and template at each evaluation, empty at its end.

        A template that is refused in an execution ended processes: it is not evaluated there again.
        """
        self._note, self._refused = note, refused

    def begin(self, execution_id: str) -> None:
        """Name the execution that the next evaluations are for."""
        _EXECUTION.set(execution_id)

    def enter(self, budget: Budget, template: str) -> None:
        """Begin an evaluation. Raises EvaluationError if the template is refused."""
        if self._note is not None:
            execution_id, template = _EXECUTION.get(), template[:SHOWN]
            if (execution_id, template) in self._refused:
                raise EvaluationError(
                    f"evaluating `{template}` ended the processes that tried; it is not tried again in this execution"
                )
            self._note(execution_id, template)
        self._budget = budget

    def leave(self) -> None:
        """End an evaluation."""
        self._budget = None
        if self._note is not None:
            self._note("", "")


RUNNING: Final = Running()
