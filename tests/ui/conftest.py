"""One server, one browser and one page for each role, for this folder.

While a browser is driven, no other event loop can run in its process: the scope `package` ends it before the tests of
another folder begin. Tests add what they change: executions, playbooks and names of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.demo import on_a_terminal
from tests.ui.browsing import LONG, LONG_NAMES, Pages, Visitor, Workspace, chromium, lacks, visiting, workspace
from tests.ui.survey import Survey, survey

expect.set_options(timeout=15_000)  # how long a slow machine may take; nothing is measured


@pytest.fixture(scope="package", autouse=True)
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Future[str] | None]:
    """Start the demo beside the first tests, if one of them is about it.

    Its commands take longer than any test.
    """
    if lacks() or not any("newcomer" in item.name for item in request.session.items):
        yield None
        return
    with ExitStack() as running, ThreadPoolExecutor(1) as thread:
        yield thread.submit(running.enter_context, on_a_terminal(tmp_path_factory.mktemp("demo")))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if lacks():
        pytest.skip(lacks())
    with chromium() as found:
        yield found


@pytest.fixture(scope="package")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    if lacks():
        pytest.skip(lacks())
    folder: Path = tmp_path_factory.mktemp("screen")
    with workspace(folder) as made:
        yield made


@pytest.fixture(scope="package")
def pages(browser: Browser, seeded: Workspace) -> Iterator[Pages]:
    with Pages(browser, seeded) as made:
        yield made


@pytest.fixture(scope="package")
def surveyed(browser: Browser, seeded: Workspace) -> Survey:
    seeded.client.register(LONG_NAMES)
    long = seeded.start(f"generated/{LONG}/{LONG}")
    seeded.reaches(long, "failed")
    with visiting(browser, seeded.url, reduced_motion="reduce") as visitor:
        return survey(visitor, {**seeded.ids, "long": long})


@pytest.fixture
def visitor(pages: Pages) -> Iterator[Visitor]:
    with pages.visiting() as found:
        yield found
