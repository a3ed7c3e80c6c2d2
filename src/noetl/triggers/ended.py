"""A trigger that fires when other executions end, as it is written.

    path: etl/*                  # of the executions that it watches
    status: [failed]
    payload: { which: "{{ execution.execution_id }}" }

Tested in tests/unit/triggers/test_ended.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, get_args

import msgspec

from noetl.schedules.spec import Problem
from noetl.triggers.template_fields import check_templates

Status = Literal["completed", "failed", "cancelled", "partial"]
STATUSES: Final[tuple[str, ...]] = get_args(Status)
ROOTS: Final = ("execution",)  # names that templates see
MOST_CHAIN: Final = 8  # executions that follow one another by such triggers
_CHAIN: Final = "chain:"


class EndedSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which ends start an execution, and with which workload."""

    path: str  # pattern of paths, with `*` and `?`
    status: tuple[Status, ...] = ()  # empty: any end
    tags: tuple[str, ...] = ()  # the execution has all of these
    payload: Mapping[str, Any] = {}  # with templates; empty: `execution`

    def matches(self, path: str, status: str, tags: Collection[str]) -> bool:
        """Return whether an end fires this trigger."""
        return (
            (not self.status or status in self.status)
            and all(tag in tags for tag in self.tags)
            and fnmatchcase(path, self.path)
        )


def check(spec: EndedSpec, own: str) -> None:
    """Check a trigger of the playbook at the path `own`. Raises Problem."""
    if fnmatchcase(own, spec.path):
        what = f"`{spec.path}` matches this playbook itself, `{own}`, which would start itself again and again."
        raise Problem("path", what, "Write a pattern that does not match it.")
    check_templates("payload", spec.payload, ROOTS, "An end of an execution")


def chain_of(tags: Collection[str]) -> int:
    """Return how many ends of executions led to one with these tags."""
    found = [tag.removeprefix(_CHAIN) for tag in tags if tag.startswith(_CHAIN)]
    return max((int(one) for one in found if one.isascii() and one.isdigit() and len(one) < 4), default=0)


def tags_of(trigger_id: str, chain: int) -> tuple[str, ...]:
    """Return the tags of an execution that a trigger starts."""
    return f"ended:{trigger_id}", f"{_CHAIN}{chain}"
