"""Lines of tasks, live and filtered, and the child executions of a step."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.browsing import Visitor, Workspace, needs_a_browser

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


@pytest.fixture(scope="module")
def regions(seeded: Workspace) -> str:
    """Start an execution with children and many lines; it waits for a signal."""
    started = seeded.start("orders/regions")
    seeded.reaches(started, "waiting")
    return started


def _lines(page: Page) -> Locator:
    return page.get_by_role("log", name="Lines").locator("[data-index]")


def test_all_lines_so_far_then_live_and_the_first_error_by_a_key(visitor: Visitor, seeded: Workspace) -> None:
    started = seeded.start("orders/regions")
    seeded.reaches(started, "waiting")
    page = visitor.go(f"/executions/{started}")
    page.keyboard.press("4")
    page.wait_for_url("**pane=logs*")
    expect(page.get_by_text("500 lines")).to_be_visible()
    expect(_lines(page).last).to_contain_text("counted 499")  # a running one is read from its end
    assert _lines(page).count() < 200
    seeded.client.signal(started, "approve")
    seeded.reaches(started, "failed")
    expect(_lines(page).last).to_contain_text("it does not work")
    page.get_by_role("log", name="Lines").evaluate("all => { all.scrollTop = 0 }")
    expect(_lines(page).first).to_contain_text("counted 0")
    page.keyboard.press("e")
    error = page.locator("[data-level=error]").first
    expect(error).to_be_visible()
    expect(error).to_contain_text("it does not work")
    expect(error).to_have_attribute("aria-current", "true")
    page.get_by_role("combobox", name="Attempt").select_option("2")
    page.wait_for_url("**attempt=2*")
    expect(_lines(page)).to_have_count(2)


def test_the_filter_of_lines_is_the_address(visitor: Visitor, regions: str) -> None:
    page = visitor.go(f"/executions/{regions}?pane=logs")
    page.get_by_label("Find in the lines").fill("COUNTED 49")
    page.wait_for_url("**find=*")
    expect(_lines(page)).to_have_count(11)
    page.get_by_role("combobox", name="Step").select_option("count")
    page.wait_for_url("**of=count*")
    page.reload()
    expect(_lines(page)).to_have_count(11)
    page.get_by_role("combobox", name="Level").select_option("error")
    expect(page.get_by_text("No line fits")).to_be_visible()


def test_a_line_leads_to_its_moment_and_its_attempt(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['failed']}?pane=logs")
    line = _lines(page).filter(has_text="about to divide")
    line.get_by_role("link").first.click()
    page.wait_for_url("**at=*")
    expect(page.get_by_text("As of event")).to_be_visible()
    line.get_by_role("link").last.click()
    panel = page.get_by_label("Step divide", exact=True)
    expect(panel.get_by_role("tab", name="Attempts")).to_have_attribute("aria-selected", "true")
    panel.get_by_role("tab", name="Logs").click()
    expect(panel).to_contain_text("about to divide")
    expect(panel).to_contain_text("division by zero")


def test_colours_are_spans_and_other_signs_are_escapes(visitor: Visitor, seeded: Workspace) -> None:
    coloured = seeded.start("orders/region")
    seeded.reaches(coloured, "completed")
    page = visitor.go(f"/executions/{coloured}?pane=logs")
    line = _lines(page).filter(has_text="bold green")
    expect(line).to_contain_text("red and bold green and  no title")
    red = line.locator("span", has_text="red").last.evaluate("one => getComputedStyle(one).color")
    green = line.locator("span", has_text="bold green").last
    assert red != green.evaluate("one => getComputedStyle(one).color")
    assert green.evaluate("one => getComputedStyle(one).fontWeight") == "600"
    expect(_lines(page).last).to_contain_text("\\u202e odd \\u0007 signs")
    assert "\u202e" not in page.locator("#content").inner_text()


def test_children_are_listed_and_the_way_back_keeps_the_moment(visitor: Visitor, regions: str) -> None:
    page = visitor.go(f"/executions/{regions}?at=30")
    page.keyboard.press("5")
    rows = page.get_by_role("table", name="Children").locator("[aria-rowindex]")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="each#1[1]")).to_contain_text("orders/region")
    expect(rows.filter(has_text="each#1[1]")).to_contain_text("completed")
    rows.filter(has_text="north#1").get_by_role("button", name="north#1").click()
    page.wait_for_url("**step=north*")
    expect(page.locator("[data-step=north]")).to_have_attribute("data-state", "done")
    page.keyboard.press("d")
    page.wait_for_url("**up=30*")
    assert regions not in page.url
    expect(page.locator("[data-step=report]")).to_be_visible()
    page.keyboard.press("u")
    page.wait_for_url(f"**/executions/{regions}*")
    expect(page.get_by_text("As of event 30 ")).to_be_visible()
    expect(rows).to_have_count(3)


def test_an_execution_without_children_says_what_would_be_here(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}?pane=children")
    expect(page.get_by_text("It has started no other execution")).to_be_visible()
