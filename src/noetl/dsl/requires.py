"""What a playbook requires before it starts (`executor.requires`), against what is there.

Which tool kinds can be run is handed in; the features are those of this version of NoETL. Tested in
tests/unit/dsl/test_requires.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from noetl.dsl.diagnostic import nearest
from noetl.dsl.playbook import Playbook

CannotRun = Callable[[Iterable[str]], tuple[str, ...]]  # gives those of some kinds that nobody runs here

FEATURES: Final[Mapping[str, str]] = {
    "templating": "Templates in Jinja2's language.",
    "admission": "Gates on steps, with parked tokens.",
    "joins": "Joins of forks: `all`, `any`, a number, `each`.",
    "loops": "Loops over lists, sequential and parallel, with reducers.",
    "cursors": "Loops over rows that are claimed from a store.",
    "policies": "Task policies: retry, jump, break, skip, fail.",
    "compensation": "Rollback by compensating steps.",
    "signals": "Waiting for signals, without a worker.",
    "timers": "Sleeping and time-outs, without a worker.",
    "children": "Child playbooks.",
    "workbook": "Tasks of the workbook that several steps call.",
    "results": "Large results by reference.",
}


def lacking(playbook: Playbook, cannot_run: CannotRun | None = None) -> str | None:
    """Say what a playbook requires that is not here; None where nothing is missing."""
    required = playbook.executor.requires.data if playbook.executor.requires is not None else None
    if not isinstance(required, Mapping):
        return None
    said: list[str] = []
    kinds = cannot_run(_texts(required.get("tools"))) if cannot_run is not None else ()
    if kinds:
        said.append(f"the tool kinds {_list(kinds)} (`executor.requires.tools`), which cannot be run here")
    features = [name for name in _texts(required.get("features")) if name not in FEATURES]
    if features:
        meant = nearest(features[0], FEATURES)
        hint = f"did you mean `{meant}`?" if meant else f"there are {', '.join(FEATURES)}"
        said.append(
            f"the features {_list(features)} (`executor.requires.features`), which this NoETL does not have; {hint}"
        )
    return f"the playbook requires {', and '.join(said)}" if said else None


def _texts(given: Any) -> list[str]:
    return [str(one) for one in given] if isinstance(given, list | tuple) else []


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
