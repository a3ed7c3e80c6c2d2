"""Deliberate mistakes: each message says where, why, and what to do.

The table is mistakes.yaml. A row with an empty fragment does not have full marks; few may.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.running import Folder
from tests.tools.web import Web

TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8")
)
HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: m, path: m/m}\n"
PARTS = ("where", "why", "fix")
ONCE = {"NOETL_RETRIES_PLUGIN_MAX_ATTEMPTS": "1"}


def rows(kind: str) -> list[Any]:
    return [pytest.param(row, id=row["name"]) for row in TABLE[kind]]


def write(folder: Folder, row: dict[str, Any], web: str = "") -> None:
    text = row.get("playbook", "workflow: [{step: a, tool: {kind: noop}}]").replace("WEB", web)
    head = "" if text.startswith("apiVersion") else HEAD
    (folder.path / f"{row['name']}.yaml").write_text(head + text, encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A folder with every playbook of the table and a store."""
    made = Folder(tmp_path_factory.mktemp("mistakes"))
    for row in (*TABLE["static"], *TABLE["start"]):
        write(made, row)
    made.run(made.playbook("- {step: a, tool: {kind: noop}}"))
    return made


@pytest.fixture(scope="module")
def reported(place: Folder) -> dict[str, str]:
    """What `noetl validate` prints about each file, from one call."""
    names = [f"{row['name']}.yaml" for row in TABLE["static"]]
    blocks: dict[str, str] = {}
    name = ""
    for line in place.call("validate", *names).out.splitlines(keepends=True):
        name = next((one for one in names if line.startswith(f"{one}:")), name)
        blocks[name] = blocks.get(name, "") + line
    return blocks


def assert_helps(row: dict[str, Any], text: str, web: str = "") -> None:
    plain = " ".join(text.split())
    for part in PARTS:
        wanted = " ".join(row[part].replace("WEB", web).split())
        assert wanted in plain, f"{part}: {wanted!r} is not in\n{text}"
    assert "Traceback" not in text


def test_sixty_mistakes_and_nearly_all_with_full_marks() -> None:
    every = [row for kind in TABLE.values() for row in kind]
    assert len(every) >= 60
    assert len([row for row in every if all(row[part] for part in PARTS)]) >= len(every) - 5


@pytest.mark.parametrize("row", rows("static"))
def test_a_mistake_in_the_file(row: dict[str, Any], reported: dict[str, str]) -> None:
    assert_helps(row, reported[f"{row['name']}.yaml"])


@pytest.mark.parametrize("row", rows("start"))
def test_a_mistake_in_the_command(row: dict[str, Any], place: Folder) -> None:
    command = row.get("command", ["run", f"{row['name']}.yaml"])
    ran = place.call(*command, **row.get("environment", {}))
    assert_helps(row, ran.out + ran.err)


@pytest.fixture(scope="module")
def server() -> Iterator[Web]:
    made = Web()
    yield made
    made.close()


@pytest.mark.parametrize("row", rows("run"))
def test_a_mistake_that_shows_when_it_runs(row: dict[str, Any], tmp_path: Path, server: Web) -> None:
    folder = Folder(tmp_path)
    write(folder, row, server.url)
    ran = folder.call("run", f"{row['name']}.yaml", **ONCE, **row.get("environment", {}))
    assert (ran.code, ran.out) == (1, "")
    assert_helps(row, ran.err, server.url)
