"""Report every recognised older form with what it did and what replaces it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Check, Finding, at
from noetl.dsl.grammar.titles import where

_ORDINALS = {"v1": "first", "v2": "second"}


def dialect_check(dialect: Literal["v1", "v2"]) -> Check:
    """Return a check that reports every form of a dialect."""

    def check(subject: CheckContext) -> Iterator[Finding]:
        for form, finding in ((finding.form, finding) for finding in subject.shape):
            if form and form.dialect == dialect:
                place = f"'{form.key}' {where(finding.level)}"
                message = f"{place} is a form of the {_ORDINALS[dialect]} dialect, where it {form.meant}."
                yield at(finding.node, message, f"Write {form.canonical}.")

    return check
