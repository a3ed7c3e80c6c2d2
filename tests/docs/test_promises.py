"""The tests of each guarantee exist, and so do the runbooks' routes and commands."""

from __future__ import annotations

import re

import pytest

from noetl.cli.app import COMMANDS
from noetl.server.api import endpoints
from tests.docs.pages import ROOT

PROMISES = (ROOT / "docs/explanation/promises.md").read_text()
RUNBOOKS = "".join(
    page.read_text() for page in [ROOT / "docs/how-to/runbooks.md", *(ROOT / "docs/how-to/runbooks").iterdir()]
)
ROWS = [row.split("|")[1:3] for row in PROMISES.splitlines() if row.startswith("| ") and "**" not in row][1:]


@pytest.mark.parametrize(("promise", "tests"), ROWS, ids=[row[0].strip()[:60] for row in ROWS])
def test_a_promise_has_tests(promise: str, tests: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)
    assert named, f"nothing holds: {promise}"
    for file, name in named:
        assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file} has no {name}"


def test_a_runbook_names_commands_and_routes_that_there_are() -> None:
    words = set(re.findall(r"`noetl (\w+)", RUNBOOKS))
    assert words <= set(COMMANDS), words - set(COMMANDS)
    routes = {re.sub(r"\{\w+\}", "X", endpoint.path) for endpoint in endpoints()}
    for path in re.findall(r"(?:POST|PATCH) (/api/[\w/-]+)", RUNBOOKS):
        assert re.sub(r"\b(ID|STEP)\b", "X", path) in routes, path
