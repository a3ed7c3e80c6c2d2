"""Shared by all tests: hypothesis profiles, a web server, summaries of long tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.tools.web import Web

# Same examples on every machine and run: a red test is red on the next machine too. Time never decides a test.
settings.register_profile(
    "steady", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# New examples on each run, many more of them: for `make chaos`.
settings.register_profile(
    "chaos", deadline=None, print_blob=True, max_examples=500, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("NOETL_HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session", autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tokens of servers out of the user's own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def web() -> Iterator[Web]:
    from tests.tools.web import Web  # most tests need no server

    server = Web()
    yield server
    server.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what long tests have to tell: `record_property("summary", text)`."""
    told = [
        (report.nodeid, text)
        for found in terminalreporter.stats.values()
        for report in found
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, text in report.user_properties
        if name == "summary"
    ]
    for name, text in told:
        terminalreporter.section(name)
        terminalreporter.write_line(str(text))
