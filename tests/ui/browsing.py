"""A real server with seeded executions, and a real browser that looks at it."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, sync_playwright

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
DESK: Final[ViewportSize] = {"width": 1280, "height": 800}
CHROMIUM = shutil.which("chromium")
# Waits in the page until a condition holds: the driver's own way costs its script and a look per frame on each load.
UNTIL: Final = """const until = holds => new Promise((done, fail) => {
    const look = () => { if (holds()) { clearTimeout(late); watch.disconnect(); done(); } };
    const watch = new MutationObserver(look);
    const late = setTimeout(() => { watch.disconnect(); fail(new Error(`not in 60 s: ${holds}`)); }, 60_000);
    watch.observe(document, {childList: true, subtree: true, attributes: true, characterData: true});
    look();
});"""
_VIEW: Final = """const content = () => document.getElementById("content");
const isShown = () => content()?.firstElementChild && !content().querySelector("[aria-label=Loading]");"""
_OPENED: Final = f"async () => {{ {UNTIL} {_VIEW} await until(isShown); }}"
_SHOW: Final = f"""async path => {{ {UNTIL} {_VIEW}
    const move = path => {{ history.pushState(null, "", path); dispatchEvent(new PopStateEvent("popstate")); }};
    const isLost = () => content()?.textContent.includes("Nothing has this address.");
    move("/settings/nowhere");
    await until(isLost);
    move(path);
    await until(() => !isLost() && isShown());
}}"""
# Counts the requests that a page waits for, from its start on.
ASKING: Final = """window.asking = 0;
const ask = window.fetch;
window.fetch = async (...given) => { window.asking += 1; try { return await ask(...given); } finally { window.asking -= 1; } };"""
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
    client: SyncClient
    ids: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)

    def noetl(self, *words: str) -> str:
        """Run a command against the server and return what it printed."""
        ran = noetl(*words, "--server", self.url, cwd=self.folder)
        assert ran.code == 0, ran.err
        return ran.out.strip()

    def start(self, path: str, payload: Mapping[str, Any] | None = None, *, tags: Sequence[str] = ()) -> str:
        """Start an execution and return its id."""
        return self.client.execute(path, payload, tags=tags).execution_id

    def copy(self, path: str, other: str) -> str:
        """Register a playbook under another path: with letters and figures of its own."""
        text = self.client.playbook(path).content or ""
        text = re.sub(r"\n  path: .*\n  description: .*\n", f"\n  path: {other}\n", text, count=1)
        return self.client.register(text).path

    def status(self, execution_id: str) -> str:
        """Return the status of an execution."""
        return self.client.status(execution_id).status

    def reaches(self, execution_id: str, *statuses: str) -> None:
        """Wait until an execution has one of these statuses."""
        until = time.monotonic() + _SEEDED_S
        while (status := self.status(execution_id)) not in statuses:
            assert time.monotonic() < until, f"{execution_id} is {status}"
            time.sleep(0.05)

    def token(self, role: str) -> str:
        """Return the secret of a token with a role."""
        if role not in self.tokens:
            self.tokens[role] = self.client.create_token(role, role).secret
        return self.tokens[role]


@contextmanager
def workspace(folder: Path) -> Iterator[Workspace]:
    """Run a server whose executions completed, failed, wait, and left dead letters."""
    with process(folder, "up", auth="auto") as (url, _up), SyncClient(url) as client:
        made = Workspace(url, folder, client)
        for file in sorted(PLAYBOOKS.glob("*.yaml")):
            client.register(file.read_text())
        for name, path, payload, tags in (
            ("completed", "orders/nightly", {"amount": 400}, ("large",)),
            ("failed", "orders/broken", {}, ()),
            ("partial", "orders/load", {}, ()),
            ("waiting", "release/publish", {}, ()),
        ):
            made.ids[name] = made.start(path, payload, tags=tags)
        for status, execution_id in made.ids.items():
            made.reaches(execution_id, status)
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
        self.page.evaluate(_OPENED)
        return self.page

    def show(self, path: str) -> Page:
        """Go to a path as a link does, without a load: in a third of the time.

        An unknown address comes between, so that the view that is waited for is not the old one.
        """
        self.page.evaluate(_SHOW, path)
        return self.page

    @contextmanager
    def hears(self, event: str, does: Callable[[Any], object]) -> Iterator[None]:
        """Call a function at each event of the page, until the block ends."""
        self.page.on(event, does)  # type: ignore[call-overload]
        yield
        self.page.remove_listener(event, does)

    @contextmanager
    def windows(self, count: int) -> Iterator[list[Page]]:
        """Open more windows of the same session.

        Tabs of one window would not be painted while another one is in front.
        """
        browser = self.page.context.browser
        assert browser is not None
        kept = self.page.context.storage_state()
        made = [_window(browser, self.url, self.wrong, storage_state=kept) for _ in range(count)]
        yield made
        for page in made:
            page.context.close()

    def leave(self) -> None:
        """End what the page does, and forget what it kept: drafts, settings, views."""
        self.page.goto(f"{self.url}/mark.svg")
        self.page.evaluate("localStorage.clear(), sessionStorage.clear()")
        self.page.mouse.move(0, 0)
        if self.page.viewport_size != DESK:
            self.page.set_viewport_size(DESK)
        wrong, self.wrong[:] = [*self.wrong], []
        assert wrong == []


def _window(browser: Browser, url: str, wrong: list[str], **more: Any) -> Page:
    """Open a window of its own; what goes wrong in it is noted."""
    context: BrowserContext = browser.new_context(**{"viewport": DESK, **more})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url)
    context.add_init_script(ASKING)

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            wrong.append(message.text)

    context.on("console", heard)
    context.on("weberror", lambda one: wrong.append(str(one.error)))
    return context.new_page()


def _signed_in(browser: Browser, url: str, secret: str | None, **more: Any) -> Visitor:
    wrong: list[str] = []
    visitor = Visitor(_window(browser, url, wrong, **more), url, wrong)
    visitor.page.goto(f"{url}/?token={secret}")
    return visitor


@contextmanager
def visiting(browser: Browser, url: str, secret: str = "", theme: str = "light", **more: object) -> Iterator[Visitor]:
    """Sign a new browser in; a script error or a refused policy fails the test."""
    visitor = _signed_in(browser, url, secret or local_server(url).token, color_scheme=theme, **more)
    yield visitor
    visitor.page.context.close()
    assert visitor.wrong == []


class Pages:
    """One signed-in page for each role, for one test after the other.

    A new browser context, a sign-in and a first load without a cache take four times as long as the load that a test is about.
    """

    def __init__(self, browser: Browser, seeded: Workspace) -> None:
        self._browser, self._seeded = browser, seeded
        self._made: dict[str, Visitor] = {}

    def __enter__(self) -> Pages:
        return self

    def __exit__(self, *_: object) -> None:
        for role in [*self._made]:
            self._close(role)

    def _close(self, role: str) -> None:
        self._made.pop(role).page.context.close()

    @contextmanager
    def visiting(self, role: str = "") -> Iterator[Visitor]:
        """Yield the page of a role, or of the server's own token, as if it were new."""
        if role not in self._made:
            url = self._seeded.url
            secret = self._seeded.token(role) if role else local_server(url).token
            self._made[role] = _signed_in(self._browser, url, secret)
        try:
            yield self._made[role]
            self._made[role].leave()
        except BaseException:
            self._close(role)
            raise


def states(page: Page) -> dict[str, str]:
    """Return the state that each node of the graph shows."""
    found = page.locator("[data-step]").evaluate_all("all => all.map(one => [one.dataset.step, one.dataset.state])")
    return {str(step): str(state) for step, state in found}
