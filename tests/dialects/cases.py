"""Playbooks of the older dialects: how each runs, and what is recorded of it.

A case has a `playbook` without its head, `outcomes` of its tasks, and what to `expect`: `runs` and `skipped` steps in order,
the `result`, `ctx`, the `status`, the tasks that were called (`calls`), and fields that they were `seen` with. One that is
`broken` only has diagnostics. The `*.golden.yaml` files record the canonical tree, the diagnostics and the events of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.canonical import canonical
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.validate import validate
from noetl.stores.memory.store import MemoryStore
from noetl.testing.scenario import Played, Player, Scenario
from noetl.testing.virtual_time import run
from noetl.wiring.embedded import language_kinds
from tests.scenarios.golden import golden

HERE = Path(__file__).parent
FILES = ("v1", "v2", "spellings", "seeds")
VERSIONS = {"v1": "noetl.io/v1", "v2": "noetl.io/v2", "spellings": "noetl.io/v2", "seeds": "noetl.io/v2"}


class Case(NamedTuple):
    file: str
    name: str
    playbook: str
    data: Mapping[str, Any]

    @property
    def is_broken(self) -> bool:
        return bool(self.data.get("broken"))

    @property
    def expect(self) -> Mapping[str, Any]:
        return self.data.get("expect") or {}


@cache
def cases() -> tuple[Case, ...]:
    """Return every case."""
    return tuple(
        Case(file, data["case"], _whole(data["playbook"], VERSIONS[file]), data)
        for file in FILES
        for data in yaml.safe_load((HERE / f"{file}.yaml").read_text())
    )


def _whole(text: str, version: str) -> str:
    if text.startswith(("apiVersion", "name")):  # it has its own head, or needs none
        return text
    return f"apiVersion: {version}\nkind: Playbook\nmetadata: {{ name: case, path: dialects/case }}\n{text}"


def diagnosed(text: str) -> list[str]:
    """Return the diagnostics of a playbook, one line each."""
    return [_line(one) for one in validate(text, "case.yaml", language_kinds(), catalog=("dialects/child",))]


def _line(one: Diagnostic) -> str:
    return f"{one.severity} {one.code} {one.start.line}:{one.start.column} {one.message}"


def tree(text: str) -> dict[str, Any]:
    """Return the canonical tree of a playbook, without its head."""
    data = canonical(normalize(parse(text, "case.yaml")))
    return {key: value for key, value in data.items() if key not in ("apiVersion", "kind", "metadata")}


def played(case: Case, text: str) -> Played:
    """Run a playbook with the outcomes of its case."""
    playbooks = {"playbook.yaml": text}
    if "child" in case.data:
        playbooks["child.yaml"] = case.data["child"]
    script = {"outcomes": case.data.get("outcomes") or {}, "payload": case.data.get("payload") or {}}
    script |= {"messages": case.data.get("messages") or []}
    scenario = Scenario(case.name, "", playbooks, script, case.expect)

    async def main() -> Played:
        return await Player(scenario, MemoryStore(), language_kinds()).play()

    return run(main)


def events(found: Played) -> str:
    return golden(found)
