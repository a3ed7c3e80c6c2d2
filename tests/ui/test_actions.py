"""Dialogs of actions: what will happen, the same as a command, and that it does."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, Route, expect

from tests.ui.browsing import AXE, Pages, Visitor, Workspace, needs_a_browser
from tests.ui.survey import THEMES, serious

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


def test_cancelling_says_what_ends_and_its_command_cancels(visitor: Visitor, seeded: Workspace) -> None:
    waiting = seeded.start("release/publish")
    seeded.reaches(waiting, "waiting")
    page = visitor.go(f"/executions/{waiting}")
    page.get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("region", name="What will happen")).to_contain_text("ask#1")
    dialog.get_by_label("Reason").fill("it's late")
    program, *words = shlex.split(dialog.locator("code", has_text="noetl cancel").inner_text())
    assert (program, words) == ("noetl", ["cancel", waiting, "--reason", "it's late"])
    seeded.noetl(*words)
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator("[data-execution-status=cancelled]")).to_be_visible()


def test_a_fork_shows_what_differs_and_its_command_forks(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}")
    page.get_by_role("button", name="Fork…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("From").fill("decide")
    dialog.get_by_label("Changes to workload").fill('{"amount": 3}')
    expect(dialog.get_by_role("region", name="What will happen")).to_contain_text("decide")
    changes = dialog.get_by_role("table", name="Changes")
    expect(changes.locator("del")).to_have_text("400")
    expect(changes.locator("ins")).to_have_text("3")
    program, *words = shlex.split(dialog.locator("code", has_text="noetl fork").inner_text())
    assert program == "noetl"
    made = seeded.noetl(*words).split()[-1]
    seeded.reaches(made, "completed")
    dialog.get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda url: seeded.ids["completed"] not in url)
    expect(page.locator("[data-execution-status=completed]")).to_be_visible()


def test_a_step_is_completed_by_hand_with_a_reason(visitor: Visitor, seeded: Workspace) -> None:
    waiting = seeded.start("release/publish")
    seeded.reaches(waiting, "waiting")
    page = visitor.go(f"/executions/{waiting}")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Complete a step…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("region", name="What will happen")).to_contain_text("ask")
    does = dialog.get_by_role("button", name="Complete the step")
    expect(does).to_be_disabled()
    expect(does).to_have_attribute("title", "give a reason: the audit trail keeps it")
    dialog.get_by_label("Reason").fill("approved by phone")
    dialog.get_by_label("Result").fill('{"approved": true}')
    does.click()
    expect(dialog).to_be_hidden()
    expect(page.locator("[data-execution-status=waiting]")).to_have_count(0)
    seeded.reaches(waiting, "completed", "failed")
    assert "approved by phone" in str(seeded.client.audit())


def test_ctx_is_changed_while_it_waits(visitor: Visitor, seeded: Workspace) -> None:
    waiting = seeded.start("release/publish")
    seeded.reaches(waiting, "waiting")
    page = visitor.go(f"/executions/{waiting}?pane=state")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Change ctx…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("New values").fill('["no object"]')
    expect(dialog.get_by_text("It must be an object")).to_be_visible()
    dialog.get_by_label("New values").fill('{"note": "from the screen"}')
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("region", name="State")).to_contain_text("from the screen")


@contextmanager
def held(page: Page, path: str) -> Iterator[Callable[[], Route]]:
    """Hold a request back, as a slow network does; yields what waits for it."""
    routes: list[Route] = []

    def found() -> Route:
        while not routes:
            page.wait_for_timeout(10)  # the driver hears of it meanwhile
        return routes.pop()

    def hold(route: Route) -> None:
        routes.append(route)

    page.route(path, hold)
    yield found
    page.unroute(path)


def test_a_click_is_marked_at_once_and_its_event_replaces_the_mark(visitor: Visitor, seeded: Workspace) -> None:
    waiting = seeded.start("release/publish")
    seeded.reaches(waiting, "waiting")
    page = visitor.go(f"/executions/{waiting}")
    mark = page.get_by_role("status").filter(has_text="ing…")
    with held(page, "**/pause") as request:
        page.get_by_role("button", name="Pause").click()
        expect(mark).to_have_text("pausing…")
        expect(page.get_by_role("button", name="Pause")).to_be_disabled()
        expect(page.locator("[data-execution-status=waiting]")).to_be_visible()
        request().continue_()
    expect(page.locator("[data-execution-status=paused]")).to_be_visible()
    expect(mark).to_have_count(0)
    with held(page, "**/resume") as request:
        page.get_by_role("button", name="Resume").click()
        expect(mark).to_have_text("resuming…")
        request().abort()  # the network fails: nothing was done
    expect(page.get_by_role("alert")).to_be_visible()
    expect(mark).to_have_count(0)
    page.get_by_role("button", name="Answer…").click()
    with held(page, "**/signal") as request:
        page.get_by_role("dialog").get_by_role("button", name="Approve").click()
        expect(page.get_by_text("approving…")).to_be_attached()  # below the dialog
        request().continue_()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("approving…")).to_have_count(0)
    seeded.client.resume(waiting)
    expect(page.locator("[data-execution-status=completed]")).to_be_visible()


def test_home_marks_an_answer_until_it_has_moved_on(visitor: Visitor, seeded: Workspace) -> None:
    waiting = seeded.start("release/publish")
    seeded.reaches(waiting, "waiting")
    page = visitor.go("/")
    button = page.get_by_role("button", name=f"Answer release/publish {waiting}")
    button.click()
    with held(page, "**/signal") as request:
        page.get_by_role("dialog").get_by_role("button", name="Approve").click()
        expect(page.get_by_text("approving…")).to_be_attached()  # below the dialog
        request().continue_()
    expect(page.get_by_text("approving…")).to_have_count(0)
    expect(button).to_have_count(0)
    seeded.reaches(waiting, "completed")


def test_rare_actions_are_in_a_menu_that_keys_reach(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['waiting']}?step=ask")
    trigger = page.get_by_role("button", name="More actions")
    items = page.get_by_role("menu", name="More actions").get_by_role("menuitem")
    expect(items).to_have_count(0)
    trigger.press("ArrowDown")
    expect(items.first).to_be_focused()
    assert items.locator("span:first-child").all_inner_texts() == [
        "Change ctx…", "Complete a step…", "Copy the link", "Copy as a command", "Download the events",
    ]  # fmt: skip
    for key, focused in (("ArrowUp", 4), ("ArrowDown", 0), ("End", 4), ("Home", 0), ("c", 1), ("c", 2)):
        page.keyboard.press(key)
        expect(items.nth(focused)).to_be_focused()
    page.keyboard.press("Escape")
    expect(trigger).to_be_focused()
    expect(items).to_have_count(0)
    expect(page.get_by_label("Step ask", exact=True)).to_be_visible()  # Escape closed the menu alone
    trigger.press("Enter")
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(trigger).to_be_focused()
    assert page.evaluate("navigator.clipboard.readText()") == f"noetl explain {seeded.ids['waiting']}"
    trigger.click()
    items.filter(has_text="Change ctx…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(trigger).to_be_focused()
    trigger.click()
    page.mouse.click(600, 400)
    expect(items).to_have_count(0)


def test_the_palette_finds_what_the_menu_holds(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['waiting']}")
    page.keyboard.press("a")
    page.get_by_role("combobox").fill("change ctx")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Change ctx")).to_be_visible()


def test_an_open_menu_has_no_serious_barrier(pages: Pages, seeded: Workspace) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: `make ui` installs it")
    with pages.visiting("viewer") as visitor:
        page = visitor.go(f"/executions/{seeded.ids['completed']}")
        page.get_by_role("button", name="More actions").click()
        item = page.get_by_role("menuitem", name="Delete…")
        expect(item).to_be_disabled()
        expect(item).to_contain_text("needs admin")
        axe = page.context.new_cdp_session(page)
        axe.send("Runtime.evaluate", {"expression": AXE.read_text()})
        for theme in THEMES:
            page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
            assert serious(axe, theme) == []
