"""A real server with seeded executions, and a real browser that looks at it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from noetl import SyncClient
from noetl.client.local_server import local_server
from noetl.server.screen import FOLDER
from tests.acceptance.run import noetl
from tests.server.serving import process

PLAYBOOKS = Path(__file__).parent / "playbooks"
AXE = Path(__file__).parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip
CHROMIUM = shutil.which("chromium")
_SEEDED_S = 60.0
LONG = "a_name_that_is_far_too_long_to_type_but_a_generator_writes_every_night"
LONG_NAMES = f"""
apiVersion: noetl.io/v10
kind: Playbook
metadata:
  name: long
  path: generated/{LONG}/{LONG}
  description: {"A description that goes on. " * 12}
  tags: [{LONG}]
workload: {{ {LONG}: "{"value " * 40}" }}
workflow:
  - step: {LONG}
    tool: {{ kind: noop, result: {{ {LONG}: "{"x" * 400}" }} }}
    next: {LONG}_fails
  - step: {LONG}_fails
    tool: {{ kind: python, code: "raise ValueError('{"why " * 60}')" }}
"""


def lacks() -> str:
    """Return why the screen cannot be tested on this machine, or nothing."""
    if CHROMIUM is None:
        return "no chromium here: scripts/chromium.sh installs it for root on Debian"
    if not (FOLDER / "index.html").exists():
        return "the web UI is not built: `make ui` needs npm"
    return ""


needs_a_browser = pytest.mark.skipif(bool(lacks()), reason=lacks() or "none")


@dataclass
class Workspace:
    """A server with one execution of each kind."""

    url: str
    folder: Path
    ids: dict[str, str] = field(default_factory=dict)

    def noetl(self, *words: str) -> str:
        """Run a command against the server and return what it printed."""
        ran = noetl(*words, "--server", self.url, cwd=self.folder)
        assert ran.code == 0, ran.err
        return ran.out.strip()

    def start(self, path: str, *words: str) -> str:
        """Start an execution and return its id."""
        return self.noetl("exec", path, *words)

    def status(self, execution_id: str) -> str:
        """Return the status of an execution."""
        with SyncClient(self.url) as client:
            return client.status(execution_id).status

    def reaches(self, execution_id: str, *statuses: str) -> None:
        """Wait until an execution has one of these statuses."""
        until = time.monotonic() + _SEEDED_S
        while self.status(execution_id) not in statuses:
            assert time.monotonic() < until, f"{execution_id} is {self.status(execution_id)}"
            time.sleep(0.05)

    def token(self, role: str) -> str:
        """Create a token with a role and return its secret."""
        return self.noetl("token", "create", "--role", role, "--name", role)


@contextmanager
def workspace(folder: Path) -> Iterator[Workspace]:
    """Run a server whose executions completed, failed, wait, and left dead letters."""
    with process(folder, "up", auth="auto") as (url, _up):
        made = Workspace(url, folder)
        with SyncClient(url) as client:
            for file in sorted(PLAYBOOKS.glob("*.yaml")):
                client.register(file.read_text())
            for name, path, payload, tags in (
                ("completed", "orders/nightly", {"amount": 400}, ("large",)),
                ("failed", "orders/broken", {}, ()),
                ("partial", "orders/load", {}, ()),
                ("waiting", "release/publish", {}, ()),
            ):
                made.ids[name] = client.execute(path, payload, tags=tags).execution_id
                made.reaches(made.ids[name], name)
        yield made


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run the browser of the system."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Visitor:
    """A page of a signed-in browser, and what went wrong in it."""

    page: Page
    url: str
    wrong: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        """Open a path and wait for its view: keys pressed before are lost."""
        self.page.goto(self.url + path)
        self.page.wait_for_selector("#content:has(> *):not(:has([aria-label=Loading]))")
        return self.page


@contextmanager
def visiting(browser: Browser, url: str, secret: str = "", theme: str = "light", **more: object) -> Iterator[Visitor]:
    """Sign a new browser in; a script error or a refused policy fails the test."""
    size = more.pop("viewport", {"width": 1280, "height": 800})
    context: BrowserContext = browser.new_context(viewport=size, color_scheme=theme, **more)  # type: ignore[arg-type]
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url)
    page = context.new_page()
    visitor = Visitor(page, url)

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            visitor.wrong.append(message.text)

    page.on("console", heard)
    page.on("pageerror", lambda error: visitor.wrong.append(str(error)))
    page.goto(f"{url}/?token={secret or local_server(url).token}")
    yield visitor
    context.close()
    assert visitor.wrong == []


def states(page: Page) -> dict[str, str]:
    """Return the state that each node of the graph shows."""
    found = page.locator("[data-step]").evaluate_all("all => all.map(one => [one.dataset.step, one.dataset.state])")
    return {str(step): str(state) for step, state in found}
