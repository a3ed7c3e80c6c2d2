"""The errors of templates, one tree.

    TemplateError
      TemplateSyntaxError     the text is not a template; raised when it is compiled
      EvaluationError         the template could not be evaluated over this data
        UndefinedError        a value is needed that is not there
        BudgetExceeded        the evaluation would cost more than its budget

Every error has a message for people, the character offset in the template's source where that is known, and a fix in
words where the cause is recognisable. Tested in tests/unit/expr/test_errors.py.
"""

from __future__ import annotations


class TemplateError(Exception):
    """A template is wrong, or cannot be evaluated."""

    def __init__(self, message: str, offset: int | None = None, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.fix = fix

    def at(self, offset: int) -> None:
        """Note where the error happened, unless a more exact place is known already."""
        if self.offset is None:
            self.offset = offset


class TemplateSyntaxError(TemplateError):
    """The text is not a template."""


class EvaluationError(TemplateError):
    """The template cannot be evaluated over this data."""


class UndefinedError(EvaluationError):
    """A value is needed that is not there."""

    def __init__(
        self,
        message: str,
        offset: int | None = None,
        fix: str | None = None,
        path: tuple[str | int, ...] = (),
        candidates: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, offset, fix)
        self.path = path
        self.candidates = candidates


class BudgetExceeded(EvaluationError):  # noqa: N818 (the name people read in events and logs)
    """The evaluation would cost more than its budget."""
