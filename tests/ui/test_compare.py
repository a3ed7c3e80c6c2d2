"""Two executions side by side on the screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import Visitor, Workspace, needs_a_browser

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]


def test_two_marked_executions_show_where_they_part(visitor: Visitor, seeded: Workspace) -> None:
    small = seeded.start("orders/nightly", {"amount": 5})
    seeded.reaches(small, "completed")
    page = visitor.go("/executions?q=path:orders/nightly")
    for name in (small, seeded.ids["completed"]):
        page.get_by_role("checkbox", name=f"Mark {name}").check()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url(f"**/executions/{small}/compare/{seeded.ids['completed']}")
    parts = page.locator("section").filter(has=page.get_by_role("heading", name="Where they part"))
    expect(parts).to_contain_text("fetch_orders.total = 17")
    expect(parts).to_contain_text("fetch_orders.total = 412")
    workload = page.locator("section").filter(has=page.get_by_role("heading", name="Workload"))
    expect(workload).to_contain_text("amount")
    expect(workload.locator("del")).to_have_text("400")
    expect(workload.locator("ins")).to_have_text("5")
    expect(page.get_by_text("Both ran the same text.")).to_be_visible()
    expect(page.get_by_role("table", name="Steps").get_by_role("row").filter(has_text="differs").first).to_be_visible()
    expect(page.get_by_text(f"noetl compare {small} {seeded.ids['completed']}")).to_be_visible()
    parts.get_by_role("link").first.click()
    page.wait_for_url(f"**/executions/{small}?at=*")
    expect(page.get_by_role("status").filter(has_text="As of event")).to_be_visible()


def test_a_failed_execution_leads_to_the_last_good_one(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['failed']}")
    page.get_by_role("link", name="What changed since the last good one?").click()
    page.wait_for_url("**/compare/last-good")
    expect(page.get_by_text("Nothing to compare with")).to_be_visible()  # it has never completed
    good = seeded.start("orders/nightly", {"amount": 1})
    seeded.reaches(good, "completed")
    page = visitor.go(f"/executions/{good}/compare/last-good")
    expect(page.get_by_role("heading", name="Last good one")).to_be_visible()


GATED = """
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: gated, path: compare/gated }
workload: { n: 1 }
workflow:
  - step: load
    tool: { kind: noop }
    next: use
  - step: use
    spec: { policy: { admit: { rules: [{ when: "{{ workload.n > 1 }}", then: { allow: true } }] } } }
    tool: { kind: noop }
"""


def test_a_gate_that_opened_for_one_is_where_they_part(visitor: Visitor, seeded: Workspace) -> None:
    seeded.client.register(GATED)
    parked, through = seeded.start("compare/gated"), seeded.start("compare/gated", {"n": 5})
    seeded.reaches(through, "completed")
    seeded.reaches(parked, "waiting", "failed", "partial")
    page = visitor.go(f"/executions/{parked}/compare/{through}")
    parts = page.locator("section").filter(has=page.get_by_role("heading", name="Where they part"))
    expect(parts).to_contain_text("the gate of use, decision 1")
    expect(parts).to_contain_text("✕ parks the tokens")
    expect(parts).to_contain_text("workload.n = 1")
    expect(parts).to_contain_text("→ admits")
    expect(parts).to_contain_text("workload.n = 5")
