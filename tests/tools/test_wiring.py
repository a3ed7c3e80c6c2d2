"""The composition root hands the kinds to the language."""

from __future__ import annotations

from noetl.tools import kinds
from noetl.wiring.embedded import cannot_run, kind_problems, language_kinds


def test_the_language_sees_every_kind() -> None:
    assert language_kinds() is kinds()
    assert {"http", "wait"} <= set(language_kinds())


def test_problems_of_packages_are_passed_on() -> None:
    assert kind_problems() == kinds().problems


def test_kinds_that_nobody_runs_are_named() -> None:
    assert cannot_run(["noop", "python", "sleep", "playbook", "workbook"]) == ()
    assert cannot_run(["noop", "teleport"]) == ("teleport",)
