"""One server and one browser for the tests of one file.

While a browser is driven, no other event loop can run in its process: it ends before other tests begin.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.browsing import Visitor, Workspace, chromium, lacks, visiting, workspace

expect.set_options(timeout=15_000)  # how long a slow machine may take; nothing is measured


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if lacks():
        pytest.skip(lacks())
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    if lacks():
        pytest.skip(lacks())
    folder: Path = tmp_path_factory.mktemp("screen")
    with workspace(folder) as made:
        yield made


@pytest.fixture
def visitor(browser: Browser, seeded: Workspace) -> Iterator[Visitor]:
    with visiting(browser, seeded.url) as found:
        yield found
