"""Every screen, light and dark: accessible, and inert to hostile text."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import AXE, Visitor, Workspace, needs_a_browser
from tests.ui.survey import SCREENS, THEMES, Survey, serious, settled

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


@pytest.mark.parametrize("theme", THEMES)
def test_no_screen_has_a_serious_barrier(surveyed: Survey, theme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: `make ui` installs it")
    found = surveyed.of(theme)
    assert set(found) >= set(SCREENS)
    assert {path: one.barriers for path, one in found.items() if one.barriers} == {}


def test_a_barrier_is_seen(visitor: Visitor) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: `make ui` installs it")
    page = visitor.go("/about")
    page.evaluate(
        "() => { const one = document.createElement('p'); one.textContent = 'pale'; one.style.color = '#eee';"
        " one.style.background = '#fff'; document.getElementById('content').prepend(one) }"
    )
    axe = page.context.new_cdp_session(page)
    axe.send("Runtime.evaluate", {"expression": AXE.read_text()})
    for theme in THEMES:
        assert [one for one in serious(axe, theme) if one.startswith("color-contrast") and "pale" in one]


def test_the_theme_is_that_of_the_system(visitor: Visitor) -> None:
    for theme in reversed(THEMES):
        visitor.page.emulate_media(color_scheme=theme)
        expect(visitor.go("/about").locator("html")).to_have_attribute("data-theme", theme)


def test_the_execution_page_fits_a_phone(visitor: Visitor, seeded: Workspace) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    page = visitor.go(f"/executions/{seeded.ids['waiting']}")
    expect(page.get_by_role("list", name="Steps")).to_contain_text("ask")
    expect(page.get_by_role("group", name="Graph")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.get_by_role("button", name="Answer…")).to_be_in_viewport(ratio=1)


def test_hostile_text_stays_text_on_every_screen(visitor: Visitor, seeded: Workspace) -> None:
    odd = seeded.start("odd/names", tags=["<img/src=x/onerror=window.hit=12>"])
    seeded.reaches(odd, "failed")
    seeded.client.create_token("viewer", "<img src=x onerror=window.hit=13>")
    shown = ""
    visitor.go("/")
    for path in (
        "/", "/executions", f"/executions/{odd}", f"/executions/{odd}?step=first&tab=outcome", f"/executions/{odd}?pane=state",
        f"/executions/{odd}?step=second&tab=outcome&pane=events", f"/executions/{odd}?pane=result", f"/executions/{odd}?pane=logs&step=first&tab=logs", "/letters", "/tokens",
        "/audit", "/playbooks/odd/names?step=first", "/playbooks/odd/names?tab=yaml",
        f"/executions/{odd}?step=%3Cimg%20src=x%20onerror=window.hit=14%3E", "/executions?q=%3Cimg%20src=x%20onerror=window.hit=15%3E",
        "/letters/%3Cimg%20src=x%20onerror=window.hit=16%3E",
    ):  # fmt: skip
        page = visitor.show(path)
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
