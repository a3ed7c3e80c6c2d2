"""Shared by all tests: hypothesis profiles, and summaries of long tests."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Same examples on every machine and run: a red test is red on the next machine too. Time never decides a test.
settings.register_profile(
    "steady", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# New examples on each run, many more of them: for `make chaos`.
settings.register_profile(
    "chaos", deadline=None, print_blob=True, max_examples=500, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("NOETL_HYPOTHESIS_PROFILE", "steady"))


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
