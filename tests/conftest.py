"""Shared by all tests: hypothesis profiles, a web server, summaries of long tests."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Generator, Iterator
from itertools import islice
from ssl import SSLContext
from traceback import walk_stack
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import HealthCheck, settings

from tests.dealing import Dealing
from tests.preloaded import start_process

if TYPE_CHECKING:
    from tests.tools.web import Web

# Otherwise each of hundreds of processes compiles what has changed, and each run compiles every test.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Servers of tests have no certificate; each connection would prepare for one, which takes longer than to connect.
os.environ.setdefault("PGSSLMODE", "disable")

# Same examples on every machine and run: a red test is red on the next machine too. Time never decides a test.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    print_blob=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
# New examples on each run, many more of them: for `make chaos`.
settings.register_profile(
    "chaos", deadline=None, print_blob=True, max_examples=500, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session", autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tokens of servers out of the user's own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _forked_side_processes() -> Iterator[None]:
    """Fork the side processes of servers: each would load the checks anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "create_subprocess_exec", start_process)
        yield


@pytest.fixture(scope="session", autouse=True)
def _open_transports_are_traced() -> Iterator[None]:
    """Record where a transport is made, for the warning if it is never closed."""
    transport: Any = asyncio.selector_events._SelectorTransport  # type: ignore[attr-defined]
    begin = transport.__init__

    def made(self: Any, *args: Any, **more: Any) -> None:
        lines = [f"{frame.f_code.co_filename}:{line}" for frame, line in islice(walk_stack(None), 40)]
        self.made_by = os.environ.get("PYTEST_CURRENT_TEST"), [line for line in lines if "-packages" not in line]
        begin(self, *args, **more)

    def left(self: Any) -> None:
        opened = getattr(self, "_sock", None)
        if opened is not None:
            text = f"unclosed {self!r}, {opened!r}, made by {getattr(self, 'made_by', None)}"
            opened.close()
            raise ResourceWarning(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transport, "__init__", made)
        patch.setattr(transport, "__del__", left)
        yield


@pytest.fixture(scope="session", autouse=True)
def _certificates_read_once() -> Iterator[None]:
    """Share httpx's certificates: each client would parse them anew, for 50 ms."""
    made: dict[tuple[object, ...], SSLContext] = {}

    def shared(verify: SSLContext | str | bool = True, cert: Any = None, trust_env: bool = True) -> SSLContext:
        if verify is not True or cert is not None:
            return httpx.create_ssl_context(verify, cert, trust_env)
        given = trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        if given not in made:
            made[given] = httpx.create_ssl_context(verify, cert, trust_env)
        return made[given]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", shared)
        yield


@pytest.fixture
def web() -> Iterator[Web]:
    from tests.tools.web import Web  # most tests need no server

    server = Web()
    yield server
    server.close()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealing | None:
    """Keep tests with a slow fixture together; under chaos, each process makes it."""
    return None if os.environ.get("HYPOTHESIS_PROFILE") == "chaos" else Dealing(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while the tests are collected, and none among them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Unfreeze what is left at the end: libraries warn of what is not freed."""
    gc.unfreeze()


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
