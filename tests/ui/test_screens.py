"""Signing in, roles and unknown addresses."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.browsing import Pages, Visitor, Workspace, needs_a_browser

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


def test_a_stranger_signs_in_and_lands_where_it_wanted_to_go(browser: Browser, seeded: Workspace) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{seeded.url}/executions?q=status:failed")
    page.wait_for_url("**/login?*")
    page.get_by_label("Token").last.fill("noetl_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("not known")
    page.get_by_label("Token").last.fill(seeded.token("viewer"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/executions?*")
    expect(page.get_by_role("row").filter(has_text="orders/broken").first).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login*")
    assert page.evaluate("localStorage.getItem('noetl.settings') ?? ''").count("noetl_") == 0
    context.close()


def test_a_viewer_sees_all_of_it_and_can_do_none_of_it(pages: Pages, seeded: Workspace) -> None:
    with pages.visiting("viewer") as viewer:
        page = viewer.go(f"/executions/{seeded.ids['waiting']}")
        for name in ("Answer…", "Pause", "Fork…", "Cancel…"):
            button = page.get_by_role("button", name=name)
            expect(button).to_be_disabled()
            expect(button).to_have_attribute("title", "needs operator")
        expect(page.get_by_role("link", name="Tokens")).to_have_count(0)
        page = viewer.go("/playbooks/orders/nightly")
        expect(page.get_by_role("button", name="Run…")).to_be_disabled()
        page = viewer.go("/executions")
        expect(page.get_by_role("row").nth(1)).to_be_visible()
        expect(page.get_by_role("checkbox")).to_have_count(0)


def test_an_unknown_place_offers_the_way_back(visitor: Visitor) -> None:
    page = visitor.go("/settings/nothing/here")
    expect(page.get_by_text("Not found")).to_be_visible()
