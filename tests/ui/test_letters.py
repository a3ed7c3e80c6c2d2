"""Dead letters: causes, one letter, a patched replay, a discard with a reason."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.ui.browsing import Pages, Visitor, Workspace, needs_a_browser

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


def _broken(seeded: Workspace) -> str:
    """Leave one letter of an execution of its own, and return the execution."""
    made = seeded.start("orders/load", {"count": 5})
    seeded.reaches(made, "partial")
    return made


def _open(page: Page) -> None:
    page.get_by_role("navigation", name="Causes").get_by_role("link").first.click()
    page.get_by_role("table", name="Letters").get_by_role("row").nth(1).click()
    expect(page.get_by_role("complementary", name="The letter")).to_contain_text("unknown sku")


def test_a_letter_is_a_link_with_its_payload_error_and_stack(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/letters?execution={seeded.ids['partial']}")
    _open(page)
    page.reload()
    letter = page.get_by_role("complementary", name="The letter")
    expect(letter).to_contain_text("number")
    letter.get_by_role("tab", name="Stack").click()
    expect(letter).to_contain_text("Traceback")
    page.keyboard.press("Escape")
    expect(letter).to_be_hidden()


def test_a_replay_shows_what_its_patch_changes_and_repairs_the_item(visitor: Visitor, seeded: Workspace) -> None:
    broken = _broken(seeded)
    page = visitor.go(f"/letters?execution={broken}")
    _open(page)
    page.get_by_role("complementary", name="The letter").get_by_role("button", name="Replay…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 letter would be replayed")
    dialog.get_by_role("button", name="Change a value").click()
    dialog.get_by_role("combobox", name="Path").fill("input.broken")
    dialog.get_by_role("textbox", name="Value").fill("false")
    changes = dialog.get_by_role("table", name="What the patch changes")
    expect(changes).to_contain_text("input.broken")
    expect(changes).to_contain_text("true")
    expect(dialog).to_contain_text("--patch input.broken=false")
    dialog.get_by_role("button", name="Replay 1").click()
    expect(dialog).to_be_hidden()
    seeded.reaches(broken, "completed")


def test_a_discard_needs_a_reason_and_keeps_it(visitor: Visitor, seeded: Workspace) -> None:
    broken = _broken(seeded)
    page = visitor.go(f"/letters?execution={broken}")
    _open(page)
    page.get_by_role("complementary", name="The letter").get_by_role("button", name="Discard…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Discard 1")).to_be_disabled()
    dialog.get_by_label("Reason").fill("an old order")
    dialog.get_by_role("button", name="Discard 1").click()
    expect(dialog).to_be_hidden()
    found = seeded.client.letters(status=("discarded",), execution_id=broken).letters
    assert [seeded.client.letter(one.message_id).note for one in found] == ["an old order"]


def test_a_status_without_letters_says_so(visitor: Visitor) -> None:
    page = visitor.go("/letters?status=discarded&step=no-such-step")
    expect(page.get_by_role("heading", name="No dead letter fits")).to_be_visible()


def test_a_viewer_reads_letters_and_acts_on_none(pages: Pages, seeded: Workspace) -> None:
    with pages.visiting("viewer") as viewer:
        page = viewer.go(f"/letters?execution={seeded.ids['partial']}")
        _open(page)
        for name in ("Replay…", "Discard…"):
            button = page.get_by_role("complementary", name="The letter").get_by_role("button", name=name)
            expect(button).to_be_disabled()
            expect(button).to_have_attribute("title", "needs operator")
