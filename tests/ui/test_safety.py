"""Every screen, light and dark: accessible, and inert to hostile text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.browsing import AXE, Visitor, Workspace, needs_a_browser, visiting

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]

SCREENS = (
    "/", "/executions", "/executions/{completed}?step=decide", "/executions/{failed}?step=divide&pane=events",
    "/executions/{partial}?at=20&pane=state", "/executions/{waiting}?step=ask&tab=why", "/executions/{completed}?pane=result",
    "/executions/{partial}?pane=items&step=items&item=3", "/executions/{partial}?pane=items&sort=slow",
    "/executions/{failed}?pane=logs&step=divide&tab=logs", "/executions/{completed}?pane=children",
    "/executions/{failed}/compare/{completed}",
    "/playbooks", "/playbooks/orders/nightly", "/playbooks/orders/nightly?tab=yaml", "/playbooks/orders/nightly?tab=executions",
    "/letters", "/workers", "/schedules", "/outbox", "/credentials", "/audit", "/tokens", "/people", "/about", "/settings",
    "/edit", "/edit/orders/nightly",
)  # fmt: skip


def settled(page: Page) -> None:
    """Wait until a screen has its content."""
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    page.wait_for_timeout(150)  # one frame more for canvases


def serious(page: Page, only: str = "") -> list[str]:
    """Return what axe-core finds to be serious or critical, by all rules or one."""
    session = page.context.new_cdp_session(page)
    session.send("Runtime.evaluate", {"expression": AXE.read_text()})
    rules = f"runOnly: ['{only}'], " if only else ""
    run = f"axe.run(document, {{{rules}resultTypes: ['violations']}}).then(found => JSON.stringify(found.violations))"
    found: dict[str, Any] = session.send("Runtime.evaluate", {"expression": run, "awaitPromise": True})
    return [
        f"{one['id']}: {node['html'][:160]} {node['any'][0]['message'] if node['any'] else ''}"
        for one in json.loads(found["result"]["value"])
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_screen_has_a_serious_barrier(browser: Browser, seeded: Workspace, theme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: `make ui` installs it")
    found: dict[str, list[str]] = {}
    with visiting(browser, seeded.url, theme=theme) as visitor:
        for path in SCREENS:
            page = visitor.go(path.format(**seeded.ids))
            settled(page)
            found[path] = serious(page, "color-contrast" if theme == "dark" else "")  # only the colours are others
    assert {path: one for path, one in found.items() if one} == {}


def test_the_execution_page_fits_a_phone(browser: Browser, seeded: Workspace) -> None:
    phone = {"width": 390, "height": 844}
    with visiting(browser, seeded.url, viewport=phone) as visitor:
        page = visitor.go(f"/executions/{seeded.ids['waiting']}")
        expect(page.get_by_role("list", name="Steps")).to_contain_text("ask")
        expect(page.get_by_role("group", name="Graph")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        expect(page.get_by_role("button", name="Answer…")).to_be_in_viewport(ratio=1)


def test_hostile_text_stays_text_on_every_screen(visitor: Visitor, seeded: Workspace) -> None:
    odd = seeded.start("odd/names", "--tag", "<img/src=x/onerror=window.hit=12>")
    seeded.reaches(odd, "failed")
    seeded.noetl("token", "create", "--role", "viewer", "--name", "<img src=x onerror=window.hit=13>")
    shown = ""
    for path in (
        "/", "/executions", f"/executions/{odd}", f"/executions/{odd}?step=first&tab=outcome", f"/executions/{odd}?pane=state",
        f"/executions/{odd}?step=second&tab=outcome&pane=events", f"/executions/{odd}?pane=result", f"/executions/{odd}?pane=logs&step=first&tab=logs", "/letters", "/tokens",
        "/audit", "/playbooks/odd/names?step=first", "/playbooks/odd/names?tab=yaml",
        f"/executions/{odd}?step=%3Cimg%20src=x%20onerror=window.hit=14%3E", "/executions?q=%3Cimg%20src=x%20onerror=window.hit=15%3E",
        "/letters/%3Cimg%20src=x%20onerror=window.hit=16%3E",
    ):  # fmt: skip
        page = visitor.go(path)
        settled(page)
        shown += page.locator("#content").inner_text()
        assert page.evaluate("window.hit") is None, path
        assert page.locator("img[src='x'], iframe, a[href^='javascript']").count() == 0, path
    assert "<img src=x onerror=window.hit=10>" in shown
    assert "\u202e" not in shown


def test_the_policy_refuses_what_others_serve(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/about")
    refused = page.evaluate(
        "() => new Promise(done => { document.addEventListener('securitypolicyviolation', one => done(one.violatedDirective));"
        " const tag = document.createElement('link'); tag.rel = 'stylesheet'; tag.href = 'http://127.0.0.2/style.css';"
        " document.body.append(tag); setTimeout(() => done(''), 3000) })"
    )
    assert refused.startswith("style-src")
    visitor.wrong.clear()  # the browser has told of the refusal
