"""The other screens: home, playbooks, dead letters, tables, sign-in and roles."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.browsing import Visitor, Workspace, needs_a_browser, visiting

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


def test_home_says_what_needs_a_person(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/")
    expect(page.get_by_role("heading", name="need you")).to_be_visible()
    expect(page.get_by_text("waits for the signal approve").first).to_be_visible()
    expect(page.get_by_text("unknown sku").first).to_be_visible()
    page.get_by_role("link", name="Answer…").first.click()
    page.wait_for_url("**/executions/*")


def test_a_playbook_is_found_and_run_with_other_input(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/playbooks")
    page.get_by_role("searchbox", name="Find a playbook").fill("night")
    page.get_by_role("link", name="orders/nightly").click()
    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("amount").fill("5")
    expect(dialog).to_contain_text("noetl exec orders/nightly --set amount='5'")
    dialog.get_by_role("button", name="Run", exact=True).dblclick()
    page.wait_for_url("**/executions/*")
    expect(page.locator("[data-step=ship]")).to_have_attribute("data-state", "done")


def test_a_playbook_has_its_graph_text_versions_and_executions(visitor: Visitor) -> None:
    page = visitor.go("/playbooks/orders/nightly")
    page.locator("[data-step=decide]").click()
    expect(page.get_by_text("Workload")).to_be_visible()
    page.get_by_role("tab", name="YAML").click()
    expect(page.get_by_role("region", name="YAML")).to_contain_text("step: inspect_by_hand")
    page.get_by_role("tab", name="Versions").click()
    expect(page.get_by_role("list", name="Versions")).to_contain_text("v1")
    page.get_by_role("tab", name="Executions").click()
    expect(page.get_by_role("table").get_by_role("row").nth(1)).to_contain_text("orders/nightly")


def test_dead_letters_are_patched_previewed_and_replayed(visitor: Visitor, seeded: Workspace) -> None:
    broken = seeded.start("orders/load", "--set", "count=5")
    seeded.reaches(broken, "partial")
    page = visitor.go("/letters")
    page.get_by_label("Causes").get_by_text("unknown sku").first.click()
    page.get_by_role("button", name="Replay this one…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 letter would be replayed")
    dialog.get_by_role("button", name="Patch a field").click()
    dialog.get_by_role("textbox", name="Field").fill("input.broken")
    dialog.get_by_role("textbox", name="Value").fill("false")
    expect(dialog.get_by_role("button", name="Replay 1")).to_be_enabled()
    before = len(seeded.noetl("dlq", "list").splitlines())
    dialog.get_by_role("button", name="Replay 1").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    seeded.reaches(broken, "completed")
    assert len(seeded.noetl("dlq", "list").splitlines()) == before - 1


def test_a_dead_letter_is_discarded_with_a_reason(visitor: Visitor, seeded: Workspace) -> None:
    seeded.reaches(seeded.start("orders/broken"), "failed")
    page = visitor.go("/letters")
    page.get_by_label("Causes").get_by_text("ZeroDivisionError").first.click()
    page.get_by_role("button", name="Discard this one…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Discard", exact=True)).to_be_disabled()
    dialog.get_by_label("Reason").fill("a test")
    dialog.get_by_role("button", name="Discard", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/workers", "pool default"),
        ("/schedules", "No schedules"),
        ("/outbox", "The outbox is empty"),
        ("/credentials", "No credentials"),
        ("/audit", "session.begin"),
        ("/tokens", "browser of local"),
        ("/people", "No users"),
        ("/about", "version"),
        ("/settings", "Shortcuts of one letter"),
    ],
)
def test_each_table_shows_its_rows_or_how_to_make_one(visitor: Visitor, path: str, words: str) -> None:
    page = visitor.go(path)
    expect(page.locator("#content")).to_contain_text(words)


def test_a_token_is_made_shown_once_and_revoked(visitor: Visitor) -> None:
    page = visitor.go("/tokens")
    page.get_by_role("button", name="Create…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("for a test")
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog).to_contain_text("noetl_")
    dialog.get_by_role("button", name="Close").click()
    row = page.get_by_role("row").filter(has_text="for a test")
    expect(row).to_contain_text("valid")
    row.get_by_role("button", name="Revoke…").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")


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


def test_a_viewer_sees_all_of_it_and_can_do_none_of_it(browser: Browser, seeded: Workspace) -> None:
    with visiting(browser, seeded.url, seeded.token("viewer")) as viewer:
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
