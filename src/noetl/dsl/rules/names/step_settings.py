"""Check a setting of the executor that names a step."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Check, Finding, at


def step_setting_check(setting: str, fix: str) -> Check:
    """Return a check of a setting of `executor.spec` that names a step."""

    def check(subject: CheckContext) -> Iterator[Finding]:
        named, steps = subject.playbook.executor.spec.get(setting), subject.names.steps
        if named is None or named.at is None or not isinstance(named.data, str) or not steps:
            return
        if named.data not in steps and named.data not in subject.obscured:
            what = f"The {setting.replace('_', ' ')} '{named.data}'"
            yield at(
                named.at,
                f"{what} is not a step of this workflow.{subject.suggestions.did_you_mean(named.data, steps)}",
                fix,
            )

    return check
