"""The list of executions: filter, live rows, keys, and addresses that keep it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.browsing import Visitor, Workspace, needs_a_browser, visiting

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


def test_each_execution_has_its_status_and_reason(visitor: Visitor, seeded: Workspace) -> None:
    for path, status in (
        ("orders/nightly", "completed"), ("orders/broken", "failed"), ("orders/load", "partial"), ("release/publish", "waiting"),
    ):  # fmt: skip
        seeded.reaches(seeded.start(path), status)  # the newest are in view
    page = visitor.go("/executions")
    table = page.get_by_role("table", name="Executions")
    for words in ("completed", "failed", "partial", "waiting"):
        expect(table.get_by_role("row").filter(has_text=words).first).to_be_visible()
    expect(table.get_by_role("row").filter(has_text="ZeroDivisionError").first).to_contain_text("orders/broken")
    expect(table.get_by_role("row").filter(has_text="waits for the signal approve").first).to_be_visible()


def test_the_filter_is_the_address_and_a_reload_keeps_it(visitor: Visitor) -> None:
    page = visitor.go("/executions")
    page.keyboard.press("/")
    page.keyboard.type("status:failed path:orders/*")
    page.keyboard.press("Enter")
    rows = page.get_by_role("table", name="Executions").locator("[aria-rowindex]")
    expect(rows.first).to_contain_text("orders/broken")
    expect(page.get_by_role("button", name="failed")).to_have_attribute("aria-pressed", "true")
    assert "status%3Afailed" in page.url
    page.reload()
    expect(rows.first).to_contain_text("orders/broken")
    assert all("failed" in text for text in rows.all_inner_texts())


def test_a_wrong_word_in_the_filter_says_what_to_use(visitor: Visitor) -> None:
    page = visitor.go("/executions?q=status:fialed+since:soon")
    expect(page.get_by_role("alert")).to_contain_text("No status fialed")
    expect(page.get_by_role("alert")).to_contain_text("24h")


def test_a_new_execution_waits_behind_a_button_and_a_known_one_changes_in_place(
    visitor: Visitor, seeded: Workspace
) -> None:
    waiting = seeded.start("release/publish")
    seeded.reaches(waiting, "waiting")
    page = visitor.go("/executions")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    row = page.get_by_role("row").filter(has=page.get_by_title(waiting, exact=True))
    expect(row).to_contain_text("waiting")
    later = seeded.start("orders/nightly")
    expect(page.get_by_role("button", name="new")).to_be_visible()
    expect(page.get_by_title(later, exact=True)).to_have_count(0)
    seeded.client.signal(waiting, "approve", {"approved": True})
    expect(row).to_contain_text("completed")
    page.get_by_role("button", name="new").click()
    expect(page.get_by_title(later, exact=True)).to_be_visible()


def test_keys_move_open_and_list_themselves(visitor: Visitor) -> None:
    page = visitor.go("/executions?q=status:failed+path:orders/broken")
    expect(page.get_by_role("table", name="Executions").locator("[aria-rowindex]").first).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Why")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.wait_for_url("**/playbooks")


def test_the_palette_finds_places_playbooks_and_executions(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/no/such/address")
    page.get_by_role("main").get_by_role("button", name="Find or do").click()
    page.keyboard.type("nightly")
    expect(page.get_by_role("option").filter(has_text="orders/nightly").first).to_be_visible()
    page.get_by_role("combobox").fill(seeded.ids["waiting"])
    expect(page.get_by_role("option").filter(has_text="release/publish").first).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/executions/{seeded.ids['waiting']}")
    page.keyboard.press("Control+k")  # the last choices come first
    expect(page.get_by_role("option").first).to_contain_text("release/publish")


def test_marked_executions_are_cancelled_after_a_preview(visitor: Visitor, seeded: Workspace) -> None:
    waiting, other = (seeded.start("release/publish", tags=("bulk",)) for _ in range(2))
    done = seeded.start("orders/nightly", tags=("bulk",))
    for execution, status in ((waiting, "waiting"), (other, "waiting"), (done, "completed")):
        seeded.reaches(execution, status)
    page = visitor.go("/executions?q=tag:bulk+status:waiting,completed")
    page.get_by_role("checkbox", name=f"Mark {waiting}").check()
    page.get_by_role("toolbar").get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"noetl cancel {waiting}")
    expect(dialog.get_by_role("button", name="Cancel 1 execution")).to_be_enabled()
    dialog.get_by_label("All that fit the filter").check()
    expect(dialog.get_by_role("region", name="What will happen")).to_contain_text("2 waiting")
    expect(dialog.get_by_role("list", name="Left out")).to_contain_text("ended with status completed")
    dialog.get_by_label("Reason").fill("wrong date")
    dialog.get_by_role("button", name="Cancel 2 executions").click()
    for execution in (waiting, other):
        seeded.reaches(execution, "cancelled")


def test_columns_are_hidden_and_made_wider_and_the_browser_keeps_it(visitor: Visitor) -> None:
    page = visitor.go("/executions")
    table = page.get_by_role("table", name="Executions")
    expect(table.get_by_role("columnheader", name="Started UTC")).to_be_visible()
    page.get_by_role("button", name="Columns of Executions").click()
    menu = page.get_by_role("dialog", name="Columns")
    menu.get_by_role("checkbox", name="Tags").uncheck()
    expect(table.get_by_role("columnheader", name="Tags")).to_have_count(0)
    menu.get_by_role("button", name="Duration wider").click()
    page.keyboard.press("Escape")
    duration = table.locator("[data-column=lasted]")
    expect(duration).to_have_css("width", "120px")
    edge = duration.locator("[data-edge]").bounding_box()
    assert edge is not None
    page.mouse.move(edge["x"] + 4, edge["y"] + 8)
    page.mouse.down()
    page.mouse.move(edge["x"] + 44, edge["y"] + 8)
    page.mouse.up()
    expect(duration).to_have_css("width", "160px")
    page.reload()
    expect(duration).to_have_css("width", "160px")
    expect(table.get_by_role("columnheader", name="Tags")).to_have_count(0)


def test_keys_copy_a_row_and_the_filter_completes_values(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/executions?q=status:failed+path:orders/broken")
    row = page.get_by_role("table", name="Executions").locator("[aria-rowindex]").first
    failed = row.get_by_role("link").first.get_attribute("title")
    page.keyboard.press("j")
    for key, text in (("c", f"{seeded.url}/executions/{failed}"), ("Shift+C", f"noetl explain {failed}")):
        page.keyboard.press(key)
        expect(page.get_by_role("status").filter(has_text=f"Copied {text}")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == text
    page.get_by_label("Filter executions").fill("path:orders/n")
    expect(page.locator("datalist option[value='path:orders/nightly']")).to_have_count(1)
    page.get_by_label("Filter executions").fill("")
    page.get_by_label("Jump to a date").fill("2020-02-29")
    page.wait_for_url("**until%3A2020-03-01*")
    expect(page.get_by_role("heading", name="No execution fits")).to_be_visible()


def test_a_filter_is_saved_under_a_name_and_its_address_shared(
    visitor: Visitor, browser: Browser, seeded: Workspace
) -> None:
    page = visitor.go("/executions")
    expect(page.get_by_role("button", name="Save view")).to_be_disabled()
    page.goto(f"{seeded.url}/executions?q=status:failed+path:orders/*")
    page.get_by_role("button", name="Save view").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Broken orders")
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**view=Broken*")
    address = page.url
    page.goto(f"{seeded.url}/executions")
    saved = page.get_by_role("group", name="Saved views")
    saved.get_by_role("button", name="Broken orders").click()
    rows = page.get_by_role("table", name="Executions").locator("[aria-rowindex]")
    expect(rows.first).to_contain_text("orders/broken")
    page.goto(f"{seeded.url}/executions?view=Broken+orders")  # the name alone, in the browser that knows it
    expect(page.get_by_label("Filter executions")).to_have_value("status:failed path:orders/*")
    page.get_by_role("button", name="waiting").click()
    expect(saved.get_by_role("button", name="Broken orders (changed)")).to_be_visible()
    with visiting(browser, seeded.url) as other:  # another browser knows the filter from the address
        other.page.goto(address)
        expect(other.page.get_by_role("table", name="Executions").locator("[aria-rowindex]").first).to_contain_text(
            "broken"
        )
        expect(other.page.get_by_role("group", name="Saved views")).to_have_count(0)
    saved.get_by_role("button", name="Forget the view Broken orders").click()
    expect(saved).to_have_count(0)
