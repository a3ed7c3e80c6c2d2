"""Check what a playbook requires and uses against what the installation has.

Tested in tests/unit/dsl/checking/test_requirements.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from noetl.dsl.checking.uses import Unavailable, uses
from noetl.dsl.diagnostic import nearest
from noetl.dsl.tree.playbook import Playbook

CannotRun = Callable[[Iterable[str]], tuple[str, ...]]  # returns the kinds that no worker can run

FEATURES: Final[Mapping[str, str]] = {
    "templating": "Templates in the Jinja2 language.",
    "admission": "Gates on steps, with parked tokens.",
    "joins": "Joins of forks: `all`, `any`, a number, `each`.",
    "loops": "Loops over lists, sequential and parallel, with reducers.",
    "cursors": "Loops over rows claimed from a store.",
    "policies": "Task policies: retry, jump, break, skip, fail.",
    "compensation": "Rollback by compensating steps.",
    "signals": "Waiting for signals, without a worker.",
    "timers": "Sleeping and timeouts, without a worker.",
    "children": "Child playbooks.",
    "workbook": "Workbook tasks that several steps call.",
    "results": "Large results by reference.",
}


def lacking(
    playbook: Playbook, cannot_run: CannotRun | None = None, unavailable: Unavailable | None = None
) -> str | None:
    """Describe what is missing to run a playbook; None where nothing is missing."""
    return _lacks_required(playbook, cannot_run) or _lacks_used(playbook, unavailable)


def _lacks_used(playbook: Playbook, unavailable: Unavailable | None) -> str | None:
    for use in uses(playbook) if unavailable is not None else ():
        why = unavailable(use.what, use.name) if unavailable is not None else None
        if why is not None:
            return f"{use.owner} needs the {use.what} `{use.name}`, which cannot be used here: {why}"
    return None


def _lacks_required(playbook: Playbook, cannot_run: CannotRun | None) -> str | None:
    required = playbook.executor.requires.data if playbook.executor.requires is not None else None
    if not isinstance(required, Mapping):
        return None
    missing: list[str] = []
    kinds = cannot_run(_texts(required.get("tools"))) if cannot_run is not None else ()
    if kinds:
        missing.append(f"the tool kinds {_list(kinds)} (`executor.requires.tools`), which cannot be run here")
    features = [name for name in _texts(required.get("features")) if name not in FEATURES]
    if features:
        meant = nearest(features[0], FEATURES)
        hint = f"did you mean `{meant}`?" if meant else f"there are {', '.join(FEATURES)}"
        missing.append(
            f"the features {_list(features)} (`executor.requires.features`), which this NoETL does not have; {hint}"
        )
    return f"the playbook requires {', and '.join(missing)}" if missing else None


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
