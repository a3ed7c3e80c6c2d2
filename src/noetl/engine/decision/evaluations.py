"""The evaluations of one decision: their budget, and answers that are known.

A server decides on its event loop, so a decision may evaluate only a little there. One that needs more stops with `Heavy`.
The caller decides it apart, keeps the answers of all its templates, and decides again with them: a decision on the same
state evaluates the same templates in the same order. Tested in tests/unit/engine/decision/test_evaluations.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from noetl.expr import Budget, Fuel, TemplateError

Answer = tuple[str, Any]  # a template, and its value or error
Value = TypeVar("Value")


class Heavy(Exception):  # noqa: N818 (a request, not an error)
    """A decision stops, to be evaluated apart."""

    def __init__(self, template: str) -> None:
        super().__init__(template)
        self.template = template


class Evaluations:
    """Evaluates the templates of one decision."""

    def __init__(self, quick: int | None = None, known: Sequence[Answer] = (), *, keeps: bool = False) -> None:
        self._fuel = Fuel()
        self._quick = quick  # operations that may be evaluated here
        self._known = known  # if any, nothing is evaluated here
        self._next = 0
        self._answers: list[Answer] | None = [] if keeps else None

    @property
    def answers(self) -> list[Answer]:
        """The templates so far, each with its value or error."""
        return self._answers or []

    def run(self, template: str, limit_ms: Any, evaluate: Callable[[Budget], Value]) -> Value:
        """Return the value of a template. Raises TemplateError and Heavy."""
        if self._known:
            return cast("Value", self._recall(template))
        try:
            value = self._evaluated(template, limit_ms, evaluate)
        except TemplateError as error:
            self._keep(template, error)
            raise
        self._keep(template, value)
        return value

    def _evaluated(self, template: str, limit_ms: Any, evaluate: Callable[[Budget], Value]) -> Value:
        quick = self._quick
        budget = self._fuel.budget(limit_ms, quick)
        try:
            return evaluate(budget)
        except TemplateError:
            if budget.operations_left < 0 and budget.operations_limit == quick:
                raise Heavy(template) from None
            raise
        finally:
            if quick is not None:
                self._quick = max(1, quick - budget.operations_used)

    def _recall(self, template: str) -> Any:
        self._next += 1
        source, answer = self._known[self._next - 1] if self._next <= len(self._known) else ("", None)
        if source != template:
            raise Heavy(template)
        if isinstance(answer, TemplateError):
            raise answer
        return answer

    def _keep(self, template: str, answer: Any) -> None:
        if self._answers is not None:
            self._answers.append((template, answer))
