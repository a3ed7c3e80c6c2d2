"""The items of a loop: heat map, keys, one item's panel, retrying failed ones."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.browsing import Pages, Visitor, Workspace, needs_a_browser

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


def _pixel(page: Page, cell: int) -> list[int]:
    """Return the colour near the corner of a cell of the heat map."""
    found: list[int] = page.locator("canvas[data-cell]").evaluate(
        """(canvas, cell) => {
            const {cell: size, columns} = canvas.dataset, ratio = canvas.width / (size * columns);
            const x = (cell % columns) * size + 2, y = Math.floor(cell / columns) * size + 2;
            return [...canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data];
        }""",
        cell,
    )
    return found


def _map(page: Page) -> Locator:
    return page.get_by_role("slider", name="Items")


def test_the_progress_of_a_loop_opens_its_heat_map(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['partial']}")
    page.locator("[data-step=items] [data-items]").click()
    page.wait_for_url("**pane=items*")
    expect(_map(page)).to_be_visible()
    pane = page.get_by_role("tabpanel").last
    expect(pane).to_contain_text("24 of 24 ended")
    expect(page.locator("canvas[data-cell]")).to_have_attribute("data-cells", "24")
    assert _pixel(page, 3) == _pixel(page, 10) == _pixel(page, 17)
    assert _pixel(page, 4) == _pixel(page, 0) != _pixel(page, 3)
    page.get_by_role("button", name="failed only").click()
    expect(page.locator("canvas[data-cell]")).to_have_attribute("data-cells", "3")
    page.wait_for_url("**only=failed*")


def test_keys_and_pointer_say_what_an_item_is_and_select_it(visitor: Visitor, seeded: Workspace) -> None:
    broken = seeded.start(seeded.copy("orders/load", "items/load"))
    seeded.reaches(broken, "partial")
    page = visitor.go(f"/executions/{broken}?pane=items")
    expect(page.locator("canvas[data-cell]")).to_have_attribute("data-cells", "24")
    _map(page).focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(_map(page)).to_have_attribute("aria-valuetext", "item 3, failed")
    told = page.get_by_role("status").filter(has_text="item 3")
    expect(told).to_contain_text("unknown sku of item 3")
    page.keyboard.press("Enter")
    page.wait_for_url("**item=3*")
    panel = page.get_by_label("Step items", exact=True)
    expect(panel.get_by_role("heading", name="items item 3")).to_be_visible()
    expect(panel).to_contain_text("unknown sku of item 3")
    expect(panel.get_by_role("link", name="Same cause as 2 others")).to_be_visible()
    panel.get_by_role("tab", name="Attempts").click()
    expect(panel).to_contain_text("attempt 1")
    size = int(page.locator("canvas[data-cell]").get_attribute("data-cell") or 0)
    _map(page).click(position={"x": size * 5.5, "y": size * 0.5})
    page.wait_for_url("**item=5*")
    panel.get_by_role("tab", name="Outcome").click()
    expect(panel).to_contain_text("stored")
    page.reload()
    expect(panel.get_by_role("heading", name="items item 5")).to_be_visible()
    panel.get_by_role("button", name="the whole loop").click()
    expect(panel.get_by_role("heading", name="items", exact=True)).to_be_visible()


def test_the_slowest_items_are_a_list(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['partial']}?pane=items")
    page.get_by_role("button", name="slowest").click()
    page.get_by_role("button", name="failed only").click()
    rows = page.get_by_role("table", name="Items, the slowest first").locator("[aria-rowindex]")
    expect(rows.nth(2)).to_be_visible()
    expect(rows.nth(4)).to_have_count(0)
    assert all("unknown sku" in text for text in rows.all_inner_texts()[1:])


def test_the_cause_of_a_failed_item_leads_to_its_group(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['partial']}?step=items&item=10")
    page.get_by_role("link", name="Same cause as").click()
    page.wait_for_url("**/letters/*")
    expect(page.get_by_role("heading", name="unknown sku")).to_be_visible()


def test_failed_items_are_retried_after_a_preview(visitor: Visitor, seeded: Workspace) -> None:
    broken = seeded.start("orders/load")
    seeded.reaches(broken, "partial")
    page = visitor.go(f"/executions/{broken}?pane=items")
    page.get_by_role("button", name="Retry failed items…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("3 letters would be replayed")
    expect(dialog).to_contain_text(f"noetl dlq replay --execution {broken} --step items")
    dialog.get_by_role("button", name="Change a value").click()
    dialog.get_by_role("combobox", name="Path").fill("input.broken")
    dialog.get_by_role("textbox", name="Value").fill("false")
    dialog.get_by_role("button", name="Replay 3").click()
    expect(dialog).to_be_hidden()
    seeded.reaches(broken, "completed")
    pane = page.get_by_role("tabpanel").last
    expect(pane.get_by_title("repaired", exact=True)).to_contain_text("3")


def test_many_items_are_cells_and_no_elements(visitor: Visitor, seeded: Workspace) -> None:
    many = seeded.start("orders/many")
    seeded.reaches(many, "completed")
    page = visitor.go(f"/executions/{many}?pane=items")
    expect(page.locator("canvas[data-cell]")).to_have_attribute("data-cells", "3000")
    assert page.evaluate("document.querySelectorAll('*').length") < 1_000
    page.keyboard.press("1")
    page.keyboard.press("7")
    expect(_map(page)).to_be_visible()


def test_a_viewer_sees_the_items_and_retries_none(pages: Pages, seeded: Workspace) -> None:
    with pages.visiting("viewer") as viewer:
        page = viewer.go(f"/executions/{seeded.ids['partial']}?pane=items")
        button = page.get_by_role("button", name="Retry failed items…")
        expect(button).to_be_disabled()
        expect(button).to_have_attribute("title", "needs operator")
