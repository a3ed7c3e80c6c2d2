"""Playbooks: the list, one playbook with its tabs, and the Run dialog."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import Pages, Visitor, Workspace, needs_a_browser

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]
_ODD = """
apiVersion: noetl.io/v10
kind: Playbook
metadata:
  name: odd
  path: odd/{name}
  description: "<script>document.title = 'broken in'</script> {long}"
workload:
  "quoted": "<b>bold</b>"
  days: [mon, tue]
workflow:
  - step: only
    tool: {{ kind: noop, result: "{result}" }}
"""


def _register(seeded: Workspace, name: str, result: str = "one") -> None:
    seeded.client.register(_ODD.format(name=name, long="x" * 300, result=result))


def test_a_playbook_is_found_by_its_tag(visitor: Visitor) -> None:
    page = visitor.go("/playbooks?tag=nightly")
    table = page.get_by_role("table", name="Playbooks")
    expect(table).to_contain_text("orders/nightly")
    expect(table).not_to_contain_text("orders/load")
    page.get_by_role("searchbox", name="Filter playbooks").fill("")
    expect(table).to_contain_text("orders/load")
    table.get_by_role("button", name="nightly").first.click()
    expect(table).not_to_contain_text("orders/load")
    expect(page.get_by_role("searchbox", name="Filter playbooks")).to_have_value("tag:nightly")


def test_a_playbook_is_found_by_its_description_and_opened_with_the_keyboard(visitor: Visitor) -> None:
    page = visitor.go("/playbooks")
    page.get_by_role("searchbox", name="Filter playbooks").fill("unknown sku")
    expect(page).to_have_url(re.compile("q=unknown"))
    rows = page.get_by_role("table", name="Playbooks").get_by_role("row")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("orders/load")
    page.get_by_role("searchbox").press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/playbooks/orders/load")


def test_playbooks_are_filtered_by_a_tag_and_by_a_label(visitor: Visitor, seeded: Workspace) -> None:
    for team in ("data", "web"):
        about = f"path: labelled/{team}, tags: [shared], labels: {{ team: {team} }}"
        seeded.client.register(
            f"apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {{ name: {team}, {about} }}\n"
            "workflow:\n  - step: one\n    tool: { kind: noop }\n"
        )
    page = visitor.go("/playbooks?q=labelled")
    table = page.get_by_role("table", name="Playbooks")
    table.get_by_role("button", name="Only shared").first.click()
    expect(page.get_by_role("searchbox")).to_have_value("tag:shared")
    expect(table.get_by_role("row")).to_have_count(3)
    table.get_by_role("button", name="Only team=web").click()
    expect(page).to_have_url(re.compile("label"))
    expect(table.get_by_role("row")).to_have_count(2)
    expect(table).to_contain_text("labelled/web")
    page.get_by_role("searchbox").fill("tag:shared data")
    expect(table.get_by_role("row").nth(1)).to_contain_text("labelled/data")
    expect(table.get_by_role("row")).to_have_count(2)


def test_a_filter_that_fits_nothing_offers_all(visitor: Visitor) -> None:
    page = visitor.go("/playbooks?q=nothing-has-this")
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_role("table", name="Playbooks")).to_contain_text("orders/nightly")


def test_a_double_click_starts_one_execution_with_the_input_of_the_form(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go("/playbooks/orders/nightly")
    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("amount").fill("many")
    expect(dialog.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    dialog.get_by_label("amount").fill("7")
    dialog.get_by_label("Tags").fill("twice")
    expect(dialog).to_contain_text("noetl exec orders/nightly --set amount=7 --tag twice")
    dialog.get_by_role("button", name="Run", exact=True).dblclick()
    page.wait_for_url("**/executions/*")
    started = seeded.client.executions(tag="twice").executions
    assert [seeded.client.status(one.execution_id).workload["amount"] for one in started] == [7]


def test_the_json_side_has_what_the_form_has(visitor: Visitor) -> None:
    page = visitor.go("/playbooks/orders/nightly")
    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("amount").fill("9")
    dialog.get_by_role("tab", name="JSON").click()
    expect(dialog.get_by_role("textbox", name="Workload")).to_have_value('{\n  "amount": 9\n}')
    dialog.get_by_role("textbox", name="Workload").fill("{")
    expect(dialog.get_by_role("button", name="Run", exact=True)).to_be_disabled()


def test_versions_show_what_changed(visitor: Visitor, seeded: Workspace) -> None:
    _register(seeded, "changed", "one")
    _register(seeded, "changed", "two")
    page = visitor.go("/playbooks/odd/changed?tab=versions")
    expect(page.get_by_role("table", name="Changed places")).to_contain_text("two")
    expect(page.get_by_text('+    tool: { kind: noop, result: "two" }')).to_be_visible()
    page.get_by_role("button", name="v1").click()
    expect(page).to_have_url(re.compile("v=1"))
    expect(page.get_by_role("heading", name="The first version")).to_be_visible()


def test_tabs_are_links_and_the_text_marks_the_line_of_a_step(visitor: Visitor) -> None:
    page = visitor.go("/playbooks/orders/nightly?tab=yaml&step=decide")
    expect(page.locator("[data-line][class*=here]")).to_contain_text("step: decide")
    page.get_by_role("tab", name="Executions").click()
    expect(page).to_have_url(re.compile("tab=executions"))
    page.reload()
    expect(page.get_by_role("tab", name="Executions")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("table", name="Executions")).to_contain_text("completed")


def test_names_and_texts_of_a_playbook_are_text(visitor: Visitor, seeded: Workspace) -> None:
    _register(seeded, "a" * 120)
    page = visitor.go("/playbooks?q=odd")
    expect(page.get_by_role("table", name="Playbooks")).to_contain_text("<script>")
    page.goto(f"{seeded.url}/playbooks/odd/{'a' * 120}")
    page.get_by_role("button", name="Run…").first.click()
    expect(page.get_by_role("dialog").get_by_label("quoted")).to_have_value("<b>bold</b>")
    assert "broken in" not in page.title()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_playbook_that_is_not_there_says_how_to_register_it(visitor: Visitor) -> None:
    page = visitor.go("/playbooks/no/such")
    expect(page.get_by_role("heading", name="No such playbook")).to_be_visible()
    expect(page.get_by_text("noetl register such.yaml")).to_be_visible()


def test_a_viewer_reads_a_playbook_and_cannot_run_it(pages: Pages) -> None:
    with pages.visiting("viewer") as viewer:
        run = viewer.go("/playbooks/orders/nightly").get_by_role("button", name="Run…")
        expect(run).to_be_disabled()
        expect(run).to_have_attribute("title", "needs operator")


def test_the_graph_shows_the_step_of_the_address_and_chooses_another(visitor: Visitor) -> None:
    page = visitor.go("/playbooks/orders/nightly?step=decide")
    graph = page.get_by_role("group", name="Graph")
    expect(graph.locator("[data-step=decide]")).to_have_attribute("aria-pressed", "true")
    graph.locator("[data-step=fetch_orders]").click()
    expect(page).to_have_url(re.compile("step=fetch_orders"))
    page.get_by_role("button", name="As a list").click()
    expect(page.get_by_role("button", name="fetch_orders")).to_have_attribute("aria-pressed", "true")


def test_a_playbook_shows_how_each_step_went(visitor: Visitor, seeded: Workspace) -> None:
    failed = seeded.start("orders/broken")
    seeded.reaches(failed, "failed")
    page = visitor.go("/playbooks/orders/broken")
    expect(page.get_by_text("0 % completed")).to_be_visible()
    divide = page.locator("[data-step=divide] [data-figures]")
    expect(divide).to_contain_text("✕ 100 %")
    expect(divide).to_have_attribute("title", re.compile(r"step-runs, \d failed"))
    page.get_by_role("tab", name="Executions").click()
    grid = page.get_by_role("slider", name="Executions by step")
    grid.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("status").filter(has_text="divide failed")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/executions/{failed}?step=divide")
