"""Error tree of templates.

    TemplateError
      TemplateSyntaxError     the source is not a template; raised at compile time
      EvaluationError         the template cannot be evaluated over this data
        UndefinedError        a required value is missing
        BudgetExceeded        the evaluation would exceed its budget

Every error has a message, the character offset in the template's source if known, and a fix where the cause is
recognisable. Tested in tests/unit/expr/syntax/test_syntax_errors.py.
"""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 2_000


class TemplateError(Exception):
    """Base class of template errors."""

    def __init__(self, message: str, offset: int | None = None, fix: str | None = None) -> None:
        if len(message) > _LONGEST:  # it quotes data
            message = f"{message[: _LONGEST // 2]}…{message[-_LONGEST // 2 :]}"
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.fix = fix

    def at(self, offset: int) -> None:
        """Set the offset, unless a more exact one is set already."""
        if self.offset is None:
            self.offset = offset


class TemplateSyntaxError(TemplateError):
    """The source is not a template."""


class EvaluationError(TemplateError):
    """The template cannot be evaluated over this data."""


class UndefinedError(EvaluationError):
    """A required value is missing."""

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


class BudgetExceeded(EvaluationError):  # noqa: N818 (the name shown in events and logs)
    """The evaluation would exceed its budget."""
