"""Small things that explain: marks of the tab, deadlines, joins, values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from noetl.client.sync import SyncClient
from noetl.trace_context import trace_id_of
from tests.server.serving import FAILS, process
from tests.ui.browsing import DESK, Pages, Visitor, Workspace, needs_a_browser, visiting

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


def _icon(page: Page) -> str:
    return str(page.locator("link[rel=icon]").get_attribute("href"))


def test_the_tab_carries_the_mark_of_the_execution(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['failed']}")
    expect(page).to_have_title(re.compile("^✕ orders/broken"))
    failed = _icon(page)
    assert failed.startswith("data:image/svg+xml,")
    page.goto(f"{seeded.url}/executions/{seeded.ids['completed']}")
    expect(page).to_have_title(re.compile("^✓ orders/nightly"))
    assert _icon(page) not in (failed, "/mark.svg")
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_url("**/executions")
    expect(page.locator("link[rel=icon]")).to_have_attribute("href", "/mark.svg")


def test_a_key_goes_to_the_failed_items_of_a_loop(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['partial']}")
    expect(page.locator("[data-step=items]")).to_contain_text("24/24")
    page.keyboard.press("n")
    page.wait_for_url("**pane=items*")
    expect(page.locator("canvas[data-cell]")).to_have_attribute("data-cells", "3")
    expect(page.get_by_label("Step items", exact=True)).to_be_visible()


def test_a_deadline_counts_down_and_says_what_follows(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['waiting']}?step=ask&tab=why")
    panel = page.get_by_label("Step ask", exact=True)
    expect(panel).to_contain_text(re.compile(r"in \d+ min \d\d s"))
    expect(panel).to_contain_text("then the step fails")
    shown = panel.locator("time", has_text="in ").last
    before = shown.inner_text()
    expect(shown).not_to_have_text(before)


def test_work_without_a_worker_names_the_command_that_starts_one(visitor: Visitor, seeded: Workspace) -> None:
    lost = seeded.start("orders/lost")
    page = visitor.go(f"/executions/{lost}?step=train&tab=why")
    panel = page.get_by_label("Step train", exact=True)
    expect(panel).to_contain_text("noetl worker start --pool gpu")
    panel.get_by_role("link", name="Workers of the pool gpu").click()
    page.wait_for_url("**/workers?q=gpu")


def test_a_join_says_who_can_still_come(visitor: Visitor, seeded: Workspace) -> None:
    meeting = seeded.start("orders/meeting")
    seeded.reaches(meeting, "waiting")
    page = visitor.go(f"/executions/{meeting}")
    badge = page.locator("[data-step=meet]").get_by_title("Can still come: ask")
    expect(badge).to_contain_text("1/2")


def test_a_step_under_the_pointer_lights_up_everywhere(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}")
    page.locator("[data-step=decide]").hover()
    expect(page.get_by_role("list", name="Step-runs in time").locator("[data-lit]")).to_have_count(1)
    expect(page.locator("[data-lit]")).to_have_count(2)
    page.get_by_role("tab", name="Events").first.click()
    page.locator("[data-step=ship]").hover()
    expect(page.locator("[data-step=decide]")).not_to_have_attribute("data-lit", "")


def test_a_value_is_searched_shown_as_a_table_and_copied_as_a_template(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['failed']}?pane=events&at=1")
    detail = page.get_by_role("region", name="Open events")
    detail.get_by_label("Find in the value").fill("timestamp")
    expect(detail).to_contain_text("timestamp")
    expect(detail).not_to_contain_text("event_id")
    listed = seeded.start("orders/listed")
    seeded.reaches(listed, "completed")
    page = visitor.go(f"/executions/{listed}?step=take&tab=outcome")
    panel = page.get_by_label("Step take", exact=True)
    panel.get_by_role("button", name="Table").click()
    table = panel.get_by_role("group", name="Rows")
    expect(table.get_by_role("row").nth(2)).to_contain_text("B-2")
    table.get_by_role("button", name="1", exact=True).click()
    assert page.evaluate("navigator.clipboard.readText()") == "{{ take[1] }}"


def test_home_fits_a_narrow_screen_and_the_editor_has_its_name(visitor: Visitor, seeded: Workspace) -> None:
    seeded.start("orders/broken")
    visitor.page.set_viewport_size({"width": 400, "height": 800})
    page = visitor.go("/")
    expect(page.get_by_role("link", name="orders/broken").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size(DESK)
    visitor.go("/edit/orders/nightly")
    crumbs = page.get_by_role("navigation", name="Breadcrumb")
    expect(crumbs.get_by_role("link", name="Editor")).to_be_visible()
    expect(crumbs).to_contain_text("orders/nightly")


def test_an_operator_runs_only_what_is_registered(pages: Pages) -> None:
    with pages.visiting("operator") as visitor:
        page = visitor.go("/edit")
        run = page.get_by_role("button", name="Run…")
        expect(run).to_be_disabled()
        expect(run).to_have_attribute("title", "Text that is not registered needs editor")
        page = visitor.go("/edit/orders/nightly")
        expect(run).to_be_enabled()


def test_a_step_shows_its_lines_and_a_line_its_step(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}?step=decide&tab=yaml")
    panel = page.get_by_label("Step decide", exact=True)
    lines = panel.locator("[data-line][data-of-step=decide]")
    expect(lines.first).to_contain_text("- step: decide")
    expect(lines.nth(5)).to_contain_text("fetch_orders.total > 100")
    panel.locator("[data-line][data-of-step=ship]").first.click()
    page.wait_for_url("**step=ship*")
    expect(page.locator("[data-step=ship]")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Step ship", exact=True).get_by_role("tab", name="YAML")).to_be_visible()


def test_the_scrubber_says_what_happened_under_the_pointer(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['failed']}")
    slider = page.get_by_role("slider", name="Moment")
    events = seeded.client.events(seeded.ids["failed"])
    failed = next(one.seq for one in events if one.event_type == "step.failed")
    box = slider.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * failed / len(events), box["y"] + 8)
    tip = page.get_by_role("tooltip")
    expect(tip).to_contain_text(f"event {failed}: step.failed of divide#1")
    expect(tip).to_contain_text("division by zero")
    page.mouse.move(0, 0)
    expect(tip).to_have_count(0)


def test_a_step_completed_by_hand_has_a_mark_that_names_who_and_why(visitor: Visitor, seeded: Workspace) -> None:
    waiting = seeded.start("release/publish")
    seeded.reaches(waiting, "waiting")
    seeded.client.complete(waiting, "ask", {}, "done by hand")
    seeded.reaches(waiting, "completed", "failed")
    page = visitor.go(f"/executions/{waiting}")
    mark = page.get_by_role("list", name="Step-runs in time").get_by_role("img", name="completed by hand")
    expect(mark).to_have_accessible_name(re.compile(r"^event \d+: completed by hand of ask: by \w+ · done by hand$"))
    page.locator("[data-step=ask]").click()
    panel = page.get_by_label("Step ask", exact=True)
    panel.get_by_role("tab", name="Outcome").click()
    expect(panel.locator("dl > div", has_text="reason")).to_contain_text("done by hand")
    expect(panel.locator("dl > div", has_text="completed by")).to_be_visible()


def test_an_arc_says_which_values_its_condition_read(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}")
    decided = next(
        one.seq
        for one in seeded.client.events(seeded.ids["completed"])
        if one.event_type == "next.evaluated" and one.entity_id == "decide"
    )
    page.locator("[data-step=decide]").focus()
    page.keyboard.press("Tab")
    arc = page.get_by_role("button", name="arc to inspect_by_hand: taken")
    expect(arc).to_be_focused()
    card = page.get_by_role("group", name="Arc", exact=True)
    expect(card).to_contain_text("fetch_orders.total > 100")
    expect(card.get_by_role("definition")).to_have_text("412")
    expect(card).to_contain_text(f"holds, taken at event {decided}")
    box = arc.bounding_box()
    assert box is not None
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    page.mouse.move(box["x"] + 12, box["y"] + 12)
    expect(card.get_by_role("definition")).to_have_text("412")
    link = card.get_by_role("link", name=f"event {decided}")
    link.click()
    page.wait_for_url(f"**at={decided}*")
    expect(page.get_by_text(f"As of event {decided} ")).to_be_visible()


def test_a_word_says_what_it_means_on_hover_and_focus(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/letters")
    heading = page.get_by_role("heading", name="Dead letters", exact=True)
    tip = page.get_by_role("tooltip")
    word = heading.locator("[data-term]")
    word.focus()
    expect(tip).to_contain_text("Work that failed for good")
    expect(word).to_have_accessible_description(re.compile("Work that failed for good"))
    page.keyboard.press("Escape")
    expect(tip).to_have_count(0)
    page = visitor.go(f"/executions/{seeded.ids['completed']}?step=decide&tab=why")
    page.get_by_label("Step decide", exact=True).locator("[data-term=arc]").hover()
    expect(tip).to_contain_text("A connection from one step to another")
    page.mouse.move(0, 0)
    expect(tip).to_have_count(0)


def test_a_failed_execution_links_to_its_trace(browser: Browser, tmp_path: Path) -> None:
    tracing = {"ENDPOINT": "http://127.0.0.1:1", "URL": "https://jaeger.example.com/trace/{trace_id}"}
    variables = {f"NOETL_TRACING_{name}": value for name, value in tracing.items()}
    with process(tmp_path, "up", auth="auto", environment=variables) as (url, _up), SyncClient(url) as client:
        started = client.execute(client.register(FAILS).path, wait_ms=20_000).execution_id
        with visiting(browser, url) as visitor:
            link = visitor.go(f"/executions/{started}").get_by_role("link", name="trace", exact=True)
            expect(link).to_have_attribute("href", f"https://jaeger.example.com/trace/{trace_id_of(started)}")
