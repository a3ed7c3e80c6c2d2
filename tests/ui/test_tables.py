"""Screens of one table each: what they show and do, and for which role."""

from __future__ import annotations

import pytest
from playwright.sync_api import Response, expect

from tests.ui.browsing import Pages, Visitor, Workspace, needs_a_browser
from tests.ui.survey import THEMES, Survey

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]
SECRET = "kept-from-every-screen"
SCREENS = ("workers", "schedules", "outbox", "credentials", "audit", "tokens", "people", "about", "settings")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", SCREENS)
def test_a_table_fits_the_page(surveyed: Survey, name: str, theme: str) -> None:
    seen = surveyed.seen[f"/{name}", theme]
    assert (seen.theme, seen.is_titled, seen.is_wide) == (theme, True, False)
    assert seen.elements < 3_000


def test_a_schedule_is_made_backfilled_in_preview_paused_and_deleted(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/schedules")
    page.get_by_role("button", name="New schedule…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("each_hour")
    dialog.get_by_label("Playbook").fill("orders/nightly")
    dialog.get_by_label("Kind").select_option("every")
    dialog.get_by_role("button", name="Create").click()
    panel = page.get_by_role("complementary", name="schedule each_hour")
    expect(panel.get_by_role("table", name="Next firings").get_by_role("row")).to_have_count(6)
    panel.get_by_role("button", name="Backfill…").click()
    expect(dialog.get_by_role("button", name="Start 24 executions")).to_be_enabled()
    expect(dialog).to_contain_text("noetl schedule backfill each_hour --from")
    dialog.get_by_role("button", name="Close").click()
    panel.get_by_role("button", name="Pause…").click()
    expect(dialog).to_contain_text("noetl schedule pause each_hour")
    dialog.get_by_role("button", name="Pause").click()
    expect(panel.get_by_role("button", name="Resume…")).to_be_visible()
    panel.get_by_role("button", name="Delete…").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog).to_be_hidden()
    expect(panel).to_be_hidden()
    assert "each_hour" not in str(seeded.client.schedules())


def test_a_credential_goes_in_and_its_value_never_comes_out(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.page
    found: list[Response] = []

    def heard(answer: Response) -> None:
        if "/api/credentials" in answer.url:
            found.append(answer)

    with visitor.hears("response", heard):
        visitor.go("/credentials")
        page.get_by_role("button", name="New credential…").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").first.fill("shop_api")
        dialog.get_by_label("Type").select_option("bearer")
        dialog.get_by_label("token").fill(SECRET)
        expect(dialog).not_to_contain_text(SECRET)
        dialog.get_by_role("button", name="Store").click()
        panel = page.get_by_role("complementary", name="credential shop_api")
        expect(panel).to_contain_text("token")
        answers = [answer.text() for answer in found]  # not as they come: the page would be ahead
    assert len(answers) > 1
    assert not any(SECRET in text for text in answers)
    assert SECRET not in page.content()


def test_the_secret_of_a_token_is_shown_once(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/tokens")
    page.get_by_role("button", name="New token…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("ci")
    expect(dialog).to_contain_text("noetl token create --role viewer --name ci --expires 30d")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog).to_contain_text("This secret is shown once.")
    secret = dialog.get_by_text("noetl_").first.inner_text()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    assert secret not in page.content()
    page.get_by_role("searchbox", name="Filter tokens").fill("ci")
    page.get_by_role("table", name="Tokens").get_by_text("ci", exact=True).click()
    page.get_by_role("button", name="Revoke…").click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("complementary")).to_contain_text("revoked")


def test_a_person_is_made_with_a_role_and_disabled(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/people")
    page.get_by_role("button", name="New person…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("grace")
    dialog.get_by_label("Paths").fill("orders/")
    expect(dialog).to_contain_text("noetl user create grace --role viewer --namespace orders/ --no-password")
    dialog.get_by_role("button", name="Create").click()
    panel = page.get_by_role("complementary", name="person grace")
    expect(panel).to_contain_text("viewer in orders/")
    panel.get_by_role("button", name="Disable…").click()
    dialog.get_by_role("button", name="Disable").click()
    expect(panel).to_contain_text("disabled")


def test_an_audit_entry_links_to_its_object(visitor: Visitor) -> None:
    page = visitor.go("/audit?q=entity:orders/nightly")
    table = page.get_by_role("table", name="Audit")
    expect(table).to_contain_text("playbook.register")
    table.get_by_role("link", name="orders/nightly").first.click()
    page.wait_for_url("**/playbooks/orders/nightly")


def test_a_pool_says_which_tags_are_missing_and_a_worker_what_it_holds(visitor: Visitor, seeded: Workspace) -> None:
    head = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {{ name: {0}, path: held/{0} }}\nworkflow:\n  - step: one\n"
    seeded.client.register(
        head.format("tagged") + "    spec: { pool: gpu, requires: { tags: [cuda] } }\n    tool: { kind: noop }\n"
    )
    seeded.client.register(head.format("busy") + "    tool: { kind: python, code: 'import time; time.sleep(120)' }\n")
    waiting, running = seeded.start("held/tagged"), seeded.start("held/busy")
    try:
        page = visitor.go("/workers")
        expect(page.get_by_text("1 of them needs the tag cuda, no ready worker has it")).to_be_visible()
        expect(page.get_by_text("noetl worker start --pool gpu --tags cuda")).to_be_visible()
        page.get_by_role("table", name="Workers").get_by_role("row").nth(1).click()
        held = page.get_by_role("complementary").get_by_role("table", name="What it holds")
        held.get_by_role("row").filter(has=page.get_by_title(running)).get_by_role("link").click()
        page.wait_for_url(f"**/executions/{running}?*")
    finally:
        for one in (waiting, running):
            seeded.client.cancel(one)


def test_a_chosen_row_is_in_the_address(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/workers")
    page.get_by_role("table", name="Workers").get_by_role("row").nth(1).click()
    expect(page.get_by_role("complementary")).to_contain_text("ready")
    page.reload()
    expect(page.get_by_role("complementary")).to_contain_text("ready")


def test_a_worker_shows_what_it_finished_lately(visitor: Visitor, seeded: Workspace) -> None:
    started = seeded.start("orders/broken")
    seeded.reaches(started, "failed")
    page = visitor.go("/workers")
    page.get_by_role("table", name="Workers").get_by_role("row").nth(1).click()
    finished = page.get_by_role("table", name="Finished lately").get_by_role("row")
    expect(finished.nth(1)).to_contain_text("divide#1")
    expect(finished.nth(1)).to_contain_text("orders/broken")
    assert finished.count() <= 1 + 20
    finished.nth(1).get_by_role("link").click()
    page.wait_for_url(f"**/executions/{started}?step=divide*")
    expect(page.get_by_label("Step divide", exact=True)).to_be_visible()


@pytest.mark.parametrize("name", ["credentials", "audit", "tokens", "people"])
def test_a_viewer_is_told_the_role_that_a_screen_needs(pages: Pages, name: str) -> None:
    with pages.visiting("viewer") as viewer:
        expect(viewer.go(f"/{name}").get_by_role("heading", name="Needs ")).to_be_visible()


def test_density_and_letters_are_kept(visitor: Visitor) -> None:
    page = visitor.go("/settings")
    page.get_by_label("Rows of tables").select_option("compact")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-density", "compact")
    page.get_by_label("Keys of one letter").select_option("off")
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)
