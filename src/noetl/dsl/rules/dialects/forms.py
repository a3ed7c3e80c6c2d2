"""Says of every recognised older form what it did and what is written instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from noetl.dsl.grammar.titles import where
from noetl.dsl.rule import Found, at
from noetl.dsl.subject import Subject

_ORDINALS = {"v1": "first", "v2": "second"}


def told(subject: Subject, dialect: Literal["v1", "v2"]) -> Iterator[Found]:
    """Give one finding for every form of a dialect."""
    for finding in subject.shape:
        form = finding.form
        if form and form.dialect == dialect:
            ordinal = _ORDINALS[dialect]
            message = f"'{form.key}' {where(finding.level)} is a form of the {ordinal} dialect, where it {form.meant}."
            yield at(finding.node, message, f"Write {form.canonical}.")
