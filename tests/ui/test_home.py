"""Home: what waits for a person, figures, and answering from there."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import Pages, Visitor, Workspace, needs_a_browser

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


def test_home_lists_what_waits_for_a_person_and_links_to_it(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/")
    needs = page.get_by_role("list", name="Needs you")
    expect(needs).to_contain_text("waits for the signal approve")
    expect(needs).to_contain_text("unknown sku")
    expect(page.get_by_role("table", name="Recent executions").get_by_role("row")).not_to_have_count(1)
    needs.get_by_role("button", name="Open ValueError").first.click()
    page.wait_for_url("**/letters/*")


def test_an_answer_from_home_moves_the_execution(visitor: Visitor, seeded: Workspace) -> None:
    asked = seeded.start("release/publish")
    seeded.reaches(asked, "waiting")
    page = visitor.go("/")
    page.get_by_role("button", name=f"Answer release/publish {asked}").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Decision").select_option("no")
    dialog.get_by_label("Comment").fill("not it's day")
    expect(dialog).to_contain_text(f"noetl reject {asked} --comment 'not it'\\''s day'")
    dialog.get_by_role("button", name="Decline").click()
    expect(dialog).to_be_hidden()
    seeded.reaches(asked, "completed")
    expect(page.get_by_role("button", name=f"Answer release/publish {asked}")).to_have_count(0)


def test_a_viewer_sees_an_answer_disabled_with_the_role_it_needs(pages: Pages) -> None:
    with pages.visiting("viewer") as viewer:
        answer = viewer.go("/").get_by_role("button", name="Answer release/publish").first
        expect(answer).to_be_disabled()
        expect(answer).to_have_attribute("title", "needs operator")
