"""Take pictures of every screen of the web UI, on the workspace of `make demo`.

    python scripts/screenshots.py [NAME…]

Writes docs/images/ui/NAME-light.png and NAME-dark.png at 1,280 × 800, and the execution page on a phone. With names, only these.
The few that pages of the documentation show are kept by git; the others are for looking at.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.run import noetl
from tests.demo import ROOT, on_a_terminal
from tests.ui.browsing import LONG, LONG_NAMES, Visitor, chromium, lacks, visiting

FOLDER = ROOT / "docs" / "images" / "ui"
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


def screens(url: str, token: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of every screen worth a picture."""
    answer = httpx.get(f"{url}/api/executions?limit=100", headers={"Authorization": f"Bearer {token}"})
    found = {(row["path"], row["status"]): row["execution_id"] for row in answer.json()["executions"]}
    pages = {
        "completed": ("examples/quantum_sweep", "completed"),
        "failed": ("examples/parameter_sweep", "failed"),
        "repaired": ("examples/parameter_sweep", "completed"),
        "partial": ("examples/import_orders", "partial"),
        "waiting": ("examples/release", "waiting"),
        "long": (f"generated/{LONG}/{LONG}", "failed"),
    }
    ids = {name: found.get(key, "") for name, key in pages.items()}
    yield from {
        "home": "/",
        "playbooks": "/playbooks",
        "playbook": "/playbooks/examples/release",
        "playbook-executions": "/playbooks/examples/parameter_sweep?tab=executions",
        "playbook-versions": "/playbooks/examples/release?tab=versions",
        "playbook-schedules": "/playbooks/examples/import_orders?tab=schedules",
        "playbook-yaml": "/playbooks/examples/release?tab=yaml&step=ask",
        "playbook-absent": "/playbooks/no/such",
        "playbook-long": f"/playbooks/generated/{LONG}/{LONG}",
        "editor": "/edit/examples/release?step=ask",
        "editor-new": "/edit",
        "executions": "/executions",
        "executions-none": "/executions?q=status:failed%20path:nothing/*",
        "execution": f"/executions/{ids['waiting']}?step=start&tab=why",
        "execution-waiting": f"/executions/{ids['waiting']}?step=ask",
        "execution-loop": f"/executions/{ids['completed']}",
        "execution-failed": f"/executions/{ids['failed']}?step=choose",
        "execution-partial": f"/executions/{ids['partial']}?step=price",
        "execution-past": f"/executions/{ids['waiting']}?at=20&pane=state",
        "execution-diff": f"/executions/{ids['waiting']}?at=30&vs=10&pane=state",
        "execution-events": f"/executions/{ids['failed']}?pane=events",
        "execution-items": f"/executions/{ids['partial']}?step=price&pane=items",
        "execution-logs": f"/executions/{ids['completed']}?pane=logs",
        "execution-children": f"/executions/{ids['completed']}?pane=children",
        "compare": f"/executions/{ids['failed']}/compare/{ids['repaired']}",
        "compare-none": f"/executions/{ids['failed']}/compare/last-good",
        "execution-result": f"/executions/{ids['completed']}?pane=result",
        "execution-long": f"/executions/{ids['long']}?step={LONG}_fails",
        "execution-absent": "/executions/381359889983153830000",
        "letters": "/letters",
        "workers": "/workers",
        "schedules": "/schedules",
        "outbox": "/outbox",
        "credentials": "/credentials",
        "audit": "/audit",
        "tokens": "/tokens",
        "people": "/people",
        "settings": "/settings",
        "about": "/about",
        "nowhere": "/settings/nothing/here",
        "login": "/login",
    }.items()  # fmt: skip


def settle(page: Page) -> None:
    """Wait until a screen has its content."""
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    page.wait_for_timeout(400)  # canvases and fonts


def take(visitor: Visitor, name: str, path: str, theme: str) -> None:
    """Take the picture of one screen."""
    settle(visitor.go(path) if name != "login" else _stranger(visitor))
    visitor.page.screenshot(path=FOLDER / f"{name}-{theme}.png")


def _stranger(visitor: Visitor) -> Page:
    visitor.page.context.clear_cookies()
    visitor.page.goto(f"{visitor.url}/login")
    return visitor.page


def dialogs(visitor: Visitor, theme: str) -> None:
    """Take the pictures of dialogs and of the palette."""
    page = visitor.go("/playbooks/examples/parameter_sweep")
    page.get_by_role("button", name="Run…").first.click()
    settle(page)
    page.screenshot(path=FOLDER / f"dialog-run-{theme}.png")
    page = visitor.go("/")
    page.get_by_role("button", name="Answer").first.click()
    settle(page)
    page.screenshot(path=FOLDER / f"dialog-answer-{theme}.png")
    page = visitor.go("/letters")
    page.keyboard.press("Control+k")
    settle(page)
    page.screenshot(path=FOLDER / f"palette-{theme}.png")
    page.keyboard.press("Escape")
    page = visitor.go("/")
    page.get_by_role("button", name="Open ValueError").first.click()
    page.wait_for_url("**/letters/*")
    settle(page)
    page.screenshot(path=FOLDER / f"letters-group-{theme}.png")


def pictures(browser: Browser, url: str, token: str, names: list[str], *, is_long: bool) -> None:
    """Take every picture, light and dark; those of long names need their playbook."""
    asked = [(name, path) for name, path in screens(url, token) if not names or name in names]
    listed = [(name, path) for name, path in asked if name.endswith("-long") == is_long]
    for theme in ("light", "dark"):
        with visiting(browser, url, token, theme, viewport=dict(DESK)) as visitor:
            if not is_long and (not names or "dialogs" in names):
                dialogs(visitor, theme)
            for name, path in listed:
                take(visitor, name, path, theme)
        phone = [(name, path) for name, path in listed if name in ("execution", "execution-waiting")]
        with visiting(browser, url, token, theme, viewport=dict(PHONE), device_scale_factor=2) as visitor:
            for name, path in phone:
                take(visitor, f"{name}-phone", path.partition("?")[0], theme)


def main(*names: str) -> int:
    """Make the workspace, take the pictures, and say where they are."""
    if lacks():
        sys.exit(lacks())
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, on_a_terminal(Path(folder)) as link, chromium() as browser:
        url, _, token = link.partition("/?token=")
        pictures(browser, url, token, list(names), is_long=False)
        with tempfile.TemporaryDirectory() as beside:
            file = Path(beside) / "odd.yaml"
            file.write_text(LONG_NAMES, encoding="utf-8")
            for words in (("register", str(file)), ("exec", f"generated/{LONG}/{LONG}", "--wait")):
                noetl(*words, "--server", url, cwd=Path(beside), NOETL_TOKEN=token)
        pictures(browser, url, token, list(names), is_long=True)
    print(f"{len(list(FOLDER.glob('*.png')))} pictures in {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
