"""The execution page: graph, panel, why, time travel, actions, live changes."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import Visitor, Workspace, needs_a_browser, states

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


def test_the_graph_shows_what_ran_and_why_it_branched(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}")
    page.locator("[data-step=decide]").click()
    panel = page.get_by_label("Step decide", exact=True)
    panel.get_by_role("tab", name="Why").click()
    expect(panel).to_contain_text("fetch_orders.total > 100")
    expect(panel).to_contain_text("412")
    assert states(page) == {
        "fetch_orders": "done", "check_stock": "done", "check_price": "done", "decide": "done",
        "inspect_by_hand": "done", "ship": "not reached",
    }  # fmt: skip
    panel.get_by_role("tab", name="Outcome").click()
    expect(panel).to_contain_text("total")
    assert "step=decide" in page.url


def test_a_failed_execution_names_the_step_the_error_and_its_line(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['failed']}")
    why = page.get_by_role("region", name="Why")
    expect(why.get_by_role("button", name="divide#1")).to_be_visible()
    expect(why).to_contain_text("division by zero")
    expect(why).to_contain_text("Correct the code at that line.")
    expect(why.get_by_role("link", name="What changed since the last good one?")).to_be_visible()
    why.get_by_role("button", name="Retry from here…").click()
    dialog = page.get_by_role("dialog", name="Retry from the failed step")
    expect(dialog.get_by_role("region", name="What will happen")).to_contain_text("divide")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    expect(page.locator("[data-step=divide]")).to_have_attribute("data-state", "failed")
    page.keyboard.press("n")
    panel = page.get_by_label("Step divide", exact=True)
    expect(panel).to_contain_text("ZeroDivisionError")
    expect(panel.get_by_role("tab", name="Outcome")).to_have_attribute("aria-selected", "true")
    panel.get_by_role("tab", name="Attempts").click()
    expect(panel).to_contain_text("attempt 1")


def test_a_link_holds_the_moment_the_selection_and_the_pane(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}?at=20&step=check_price&pane=events")
    expect(page.get_by_text("As of event 20")).to_be_visible()
    expect(page.locator("[data-step=decide]")).to_be_visible()
    before = states(page)
    assert before["decide"] == "not reached"
    expect(page.get_by_role("tab", name="Events").last).to_have_attribute("aria-selected", "true")
    page.reload()
    expect(page.get_by_text("As of event 20")).to_be_visible()
    expect(page.locator("[data-step=check_price]")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("[data-step=decide]")).to_have_attribute("data-state", "not reached")
    assert states(page) == before
    page.keyboard.press("l")
    expect(page.get_by_text("As of event")).to_have_count(0)
    expect(page.locator("[data-step=decide]")).to_have_attribute("data-state", "done")


def test_keys_step_through_events(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}?at=10")
    expect(page.get_by_text("As of event 10 ")).to_be_visible()
    for key, seq in ((".", 11), (",", 10), ("Home", 1)):
        page.keyboard.press(key)
        expect(page.get_by_text(f"As of event {seq} ")).to_be_visible()
        page.wait_for_url(f"**at={seq}*")
    page.keyboard.press(">")
    page.wait_for_url(lambda url: "at=1&" not in f"{url}&")
    page.get_by_role("slider", name="Moment").fill("20")
    page.wait_for_url("**at=20*")


def test_an_answer_moves_the_execution_on_while_one_looks(visitor: Visitor, seeded: Workspace) -> None:
    waiting = seeded.start("release/publish")
    page = visitor.go(f"/executions/{waiting}")
    expect(page.get_by_role("region", name="Why")).to_contain_text("waits for the signal approve")
    page.get_by_role("button", name="Answer…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"noetl approve {waiting}")
    dialog.get_by_role("button", name="Approve").click()
    expect(page.locator("[data-step=publish]")).to_have_attribute("data-state", "done")
    expect(page.locator("[data-step=keep]")).to_have_attribute("data-state", "not reached")
    assert seeded.status(waiting) == "completed"


def test_a_token_slides_along_the_arc_that_it_takes(visitor: Visitor, seeded: Workspace) -> None:
    waiting = seeded.start("release/publish")
    page = visitor.go(f"/executions/{waiting}")
    expect(page.locator("[data-step=ask]")).to_have_attribute("data-state", "suspended")
    page.evaluate(
        "() => new MutationObserver((found) => { for (const one of found) for (const node of one.addedNodes)"
        " if (node.dataset?.sliding) window.slid = (window.slid ?? 0) + 1; })"
        ".observe(document.body, { childList: true, subtree: true })"
    )
    seeded.client.signal(waiting, "approve", {"approved": True})
    expect(page.locator("[data-step=publish]")).to_have_attribute("data-state", "done")
    page.wait_for_function("window.slid === 1")
    expect(page.locator("[data-sliding]")).to_have_count(0)


def test_what_others_do_appears_without_a_reload(visitor: Visitor, seeded: Workspace) -> None:
    waiting = seeded.start("release/publish")
    page = visitor.go(f"/executions/{waiting}")
    expect(page.locator("[data-step=ask]")).to_have_attribute("data-state", "suspended")
    seeded.client.signal(waiting, "approve", {"approved": False})
    expect(page.locator("[data-step=keep]")).to_have_attribute("data-state", "done")


def test_a_fork_from_the_past_and_a_retry_make_new_executions(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}?at=5")
    page.get_by_role("button", name="Fork from event 5…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Changes to workload (JSON)").fill('{"amount": 1}')
    dialog.get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda url: "/executions/" in url and seeded.ids["completed"] not in url)
    expect(page.locator("[data-step=ship]")).to_have_attribute("data-state", "done")
    page.goto(f"{seeded.url}/executions/{seeded.ids['failed']}")
    page.get_by_role("button", name="Retry…").click()
    page.get_by_role("dialog").get_by_role("button", name="Retry", exact=True).click()
    page.wait_for_url(lambda url: "/executions/" in url and seeded.ids["failed"] not in url)
    expect(page.locator("[data-step=divide]")).to_have_attribute("data-state", "failed")


def test_a_loop_shows_its_progress_and_dead_letters(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['partial']}")
    node = page.locator("[data-step=items]")
    expect(node).to_contain_text("24/24")
    expect(node).to_contain_text("✉3")
    expect(page.get_by_role("region", name="Why")).to_contain_text("3 of 24 items failed")


def test_two_moments_are_compared(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}?at=40&vs=10&pane=state")
    expect(page.get_by_role("heading", name="Changed between event 10 and event 40")).to_be_visible()
    expect(page.get_by_role("table", name="Changes").get_by_role("row").first).to_be_visible()


def test_an_unknown_execution_says_so(visitor: Visitor) -> None:
    page = visitor.go(f"/executions/{quote('nowhere/at all', safe='')}")
    expect(page.get_by_role("alert").first).to_contain_text("nowhere")


def test_moving_through_time_asks_only_for_the_moment(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}?at=5")
    expect(page.locator("[data-step=fetch_orders]")).to_be_visible()
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    with visitor.hears("request", lambda request: asked.append(request.url)):
        for _ in range(10):
            page.keyboard.press(".")
        expect(page.get_by_text("As of event 15 ")).to_be_visible()
        page.wait_for_load_state("networkidle")
    # What waited there is asked for when the moment has rested.
    assert [url for url in asked if "/moment?" not in url and "/explain?seq=" not in url] == []
    assert sum("/explain?" in url for url in asked) < 10


def test_the_past_says_what_waited_then(visitor: Visitor, seeded: Workspace) -> None:
    events = seeded.client.events(seeded.ids["completed"])
    queued = next(one.seq for one in events if one.event_type == "step.scheduled")
    page = visitor.go(f"/executions/{seeded.ids['completed']}?at={queued}&step=fetch_orders&tab=why")
    why = page.get_by_role("region", name="Why")
    expect(why.get_by_role("button", name="fetch_orders")).to_be_visible()
    expect(why).to_contain_text("waits for a worker")
    expect(page.get_by_label("Step fetch_orders", exact=True)).to_contain_text("Waits for a worker")
    page.keyboard.press("l")
    expect(why).to_have_count(0)


def test_the_graph_hides_what_is_done_and_the_panel_grows(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['failed']}?show=open")
    expect(page.locator("[data-step=never]")).to_be_visible()
    assert sorted(states(page)) == ["divide", "never"]
    page.get_by_label("Shown in the graph").select_option("only failures")
    expect(page.locator("[data-step=never]")).to_have_count(0)
    assert states(page) == {"divide": "failed"}
    page.wait_for_url("**show=failed*")
    page.locator("[data-step=divide]").click()
    panel = page.get_by_label("Step divide", exact=True)
    edge = page.get_by_role("separator", name="Width of the panel")
    edge.press("ArrowLeft")
    expect(edge).to_have_attribute("aria-valuenow", "444")
    page.reload()
    expect(panel).to_have_css("width", "444px")


def test_a_key_lists_what_the_page_can_do(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['failed']}")
    page.keyboard.press("a")
    choices = page.get_by_role("listbox", name="Choices").get_by_role("option")
    expect(choices.filter(has_text="Fork…")).to_be_visible()
    page.get_by_role("combobox").fill("retry")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("noetl retry")


def test_events_are_searched_and_all_of_them_downloaded(visitor: Visitor, seeded: Workspace) -> None:
    execution = seeded.start("orders/many")
    seeded.reaches(execution, "completed")
    page = visitor.go(f"/executions/{execution}?pane=events")
    page.get_by_role("searchbox", name="Filter events").fill("workflow.finished")
    expect(page.get_by_role("listbox", name="Events").get_by_role("option")).to_have_count(1)
    page.get_by_role("searchbox", name="Filter events").fill("")
    expect(page.get_by_role("listbox", name="Events").get_by_role("option").nth(1)).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    lines = saved.value.path().read_text().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(seeded.client.events(execution)) + 1))
    assert len(lines) > 1_000


def test_events_stay_open_beside_the_chosen_one(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}?pane=events&at=2")
    opened = page.get_by_role("region", name="Open events")
    opened.get_by_role("button", name="Keep open").click()
    page.keyboard.press(".")
    expect(opened.get_by_role("article", name="Event 3")).to_contain_text("event_type")
    expect(opened.get_by_role("article", name="Event 2")).to_contain_text("event_type")
    opened.get_by_role("button", name="Close event 2").click()
    expect(opened.get_by_role("article")).to_have_count(1)
    expect(page.get_by_role("button", name="END")).to_be_visible()
