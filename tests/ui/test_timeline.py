"""The timeline of an execution: folded gaps, zoom, the critical path, children."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui.browsing import Visitor, Workspace, needs_a_browser

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]

_HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {{ name: {0}, path: timeline/{0} }}\nworkflow:\n"
_CALL = "kind: playbook, path: timeline"
_ALL = "    loop: {{ in: '{{{{ range({}) | list }}}}', iterator: i, spec: {{ mode: parallel, max_in_flight: 60 }} }}\n"
TINY = _HEAD.format("tiny") + "  - step: one\n    tool: { kind: noop }\n"
LAND = (
    _HEAD.format("land")
    + f"  - step: each\n{_ALL.format(2)}    tool: {{ {_CALL}/tiny }}\n    next: rest\n  - step: rest\n"
)
WORLD = _HEAD.format("world") + f"  - step: all\n    tool: {{ {_CALL}/land }}\n"
MANY = _HEAD.format("many") + f"  - step: all\n{_ALL.format(53)}    tool: {{ {_CALL}/tiny }}\n"
ROUNDS = (
    _HEAD.format("rounds")
    + """\
  - step: begin
    next: turn
  - step: turn
    next: count
  - step: count
    set: { ctx.rounds: "{{ ctx.rounds | default(0) + 1 }}" }
    next: { arcs: [{ step: turn, when: "{{ ctx.rounds < 120 }}" }] }
"""
)


def places(page: Page, *names: str) -> list[tuple[float, float]]:
    """Return the left and right edges of elements in pixels, all of one frame."""
    look = "name => [...document.querySelectorAll(name)].at(-1).getBoundingClientRect().toJSON()"
    return [(one["left"], one["right"]) for one in page.evaluate(f"names => names.map({look})", names)]


def test_a_long_wait_is_folded_until_a_click(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['waiting']}")
    fold = page.get_by_role("button", name=re.compile("^Unfold ")).last
    expect(fold).to_have_text(re.compile(r"^\d"))
    axis, folded, moment = places(page, "[data-axis]", "[data-fold]", "[data-moment]")
    assert abs(moment[0] - folded[0]) <= 2  # the last event is the beginning of the wait
    assert folded[0] - axis[0] > 200  # what ran before has the room
    assert abs(folded[1] - axis[1]) <= 1  # it waits until now
    fold.click()
    again = page.get_by_role("button", name="Fold gaps")
    expect(again).to_be_visible()
    expect(page.get_by_role("group", name="Timeline")).to_be_focused()
    assert places(page, "[data-moment]")[0][0] < moment[0]
    page.reload()
    again.click()
    expect(fold).to_be_visible()
    assert "unfold" not in page.url


def test_a_drag_over_the_axis_zooms_and_the_address_keeps_it(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}")
    rows = page.get_by_role("list", name="Step-runs in time").get_by_role("listitem")
    expect(rows).to_have_count(5)
    axis, bar = page.locator("[data-axis]").bounding_box(), rows.first.locator("[data-bar]").last.bounding_box()
    assert axis is not None
    assert bar is not None
    y = axis["y"] + 8
    page.mouse.move(bar["x"] + bar["width"] / 4, y)
    page.mouse.down()
    page.mouse.move(bar["x"] + bar["width"] / 3, y)
    page.mouse.move(bar["x"] + bar["width"] / 2, y)  # of the first step-run, which ends before others begin
    page.mouse.up()
    page.wait_for_url(re.compile(r"zoom=\d+-\d+"))
    shown = page.get_by_text("of 5 step-runs")
    expect(shown).to_have_text(re.compile("^1 of 5 step-runs, "))
    expect(rows).to_have_count(1)
    page.reload()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("fetch_orders#1")
    page.get_by_role("button", name="Whole time").click()
    expect(rows).to_have_count(5)
    expect(shown).to_have_count(0)
    assert "zoom" not in page.url


def test_keys_zoom_while_the_timeline_has_the_focus(visitor: Visitor, seeded: Workspace) -> None:
    page = visitor.go(f"/executions/{seeded.ids['completed']}?step=decide")
    page.get_by_role("group", name="Timeline").focus()
    whole = page.get_by_role("button", name="Whole time")
    for key in ("0", "Escape"):
        page.keyboard.press("+")
        expect(whole).to_be_visible()
        page.keyboard.press(key)
        expect(whole).to_have_count(0)
    expect(page.get_by_label("Step decide", exact=True)).to_be_visible()  # Escape ended the zoom alone
    page.keyboard.press("+")
    expect(whole).to_be_visible()
    page.keyboard.press("-")
    expect(whole).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_label("Step decide", exact=True)).to_have_count(0)


def test_the_critical_path_leads_over_the_branch_that_came_last(visitor: Visitor, seeded: Workspace) -> None:
    met = seeded.start("orders/meeting")
    seeded.reaches(met, "waiting")
    seeded.client.signal(met, "approve", {"approved": True})
    seeded.reaches(met, "completed")
    page = visitor.go(f"/executions/{met}")
    rows = page.get_by_role("list", name="Step-runs in time").get_by_role("button")
    expect(rows).to_have_count(4)
    steps = rows.and_(page.locator("[data-critical]")).evaluate_all("all => all.map(one => one.dataset.ofStep)")
    assert steps == ["begin", "ask", "meet"]  # not log, which came before
    expect(rows.filter(has_text="meet#1")).to_have_attribute("title", re.compile("on the critical path"))
    expect(rows.filter(has_text="log#1")).not_to_have_attribute("title", re.compile("critical"))
    expect(page.get_by_role("list", name="Legend")).to_contain_text("critical path")


def test_children_open_below_their_step_run_and_theirs_below_them(visitor: Visitor, seeded: Workspace) -> None:
    for text in (TINY, LAND, WORLD):
        seeded.client.register(text)
    world = seeded.start("timeline/world")
    seeded.reaches(world, "completed")
    page = visitor.go(f"/executions/{world}")
    rows = page.get_by_role("list", name="Step-runs in time").get_by_role("listitem")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Children of all#1").click()
    expect(rows).to_contain_text(["all#1", "timeline/land", "each#1", "rest#1"])
    page.get_by_role("button", name="Children of each#1").click()
    expect(rows).to_contain_text(
        ["all#1", "timeline/land", "each#1", "[0] timeline/tiny", "[1] timeline/tiny", "rest#1"]
    )
    page.get_by_role("button", name="Step-runs of timeline/tiny").last.click()
    expect(rows).to_have_count(7)
    expect(rows.nth(5)).to_contain_text("one#1")
    assert rows.evaluate_all("all => all.map(one => one.dataset.depth)") == ["0", "1", "2", "3", "3", "4", "2"]
    critical = rows.filter(has=page.locator("[data-critical]"))
    tiny = critical.filter(has_text="timeline/tiny")
    expect(tiny).to_have_count(1)  # the child that ended last
    expect(critical).to_contain_text(["all#1", "timeline/land", "each#1", "timeline/tiny"])
    expect(critical.last).to_contain_text("rest#1")
    expect(tiny.locator("[data-critical]")).to_have_attribute("title", re.compile("on the critical path"))
    page.reload()
    expect(rows).to_have_count(7)
    rows.nth(1).get_by_role("link").click()
    page.wait_for_url(lambda url: "/executions/" in url and world not in url)
    expect(page.locator("[data-step=rest]")).to_have_attribute("data-state", "done")
    page.go_back()
    page.get_by_role("button", name="Children of all#1").click()
    expect(rows).to_have_count(1)


def test_many_children_end_with_a_link_to_all_of_them(visitor: Visitor, seeded: Workspace) -> None:
    for text in (TINY, MANY):
        seeded.client.register(text)
    many = seeded.start("timeline/many")
    seeded.reaches(many, "completed")
    page = visitor.go(f"/executions/{many}?nest=%2Fall%231")
    expect(page.get_by_role("link", name="timeline/tiny").first).to_be_visible()
    page.get_by_role("group", name="Timeline").evaluate("one => one.scrollTo(0, one.scrollHeight)")
    page.get_by_role("link", name="3 more…").click()
    expect(page.get_by_role("table", name="Children")).to_contain_text("timeline/tiny")


def test_very_many_step_runs_are_a_row_for_each_step(visitor: Visitor, seeded: Workspace) -> None:
    seeded.client.register(ROUNDS)
    rounds = seeded.start("timeline/rounds")
    seeded.reaches(rounds, "completed")
    page = visitor.go(f"/executions/{rounds}")
    rows = page.get_by_role("list", name="Step-runs in time").get_by_role("listitem")
    expect(rows).to_have_count(3)
    expect(rows).to_contain_text(["begin#1", "turn", "count"])
    expect(rows.nth(1)).to_contain_text("×120")
    expect(page.get_by_text("241 step-runs, by step: shortest · median · longest")).to_be_visible()
    expect(rows.nth(1).locator("[data-of-step]")).to_have_attribute(
        "title", re.compile(r"^turn: 120 step-runs, shortest .+, median .+, longest ")
    )
    assert rows.nth(1).locator("[data-lane] path").count() <= 4  # whatever their number
    page.get_by_role("button", name="120 step-runs of turn").click()
    expect(rows.nth(2)).to_contain_text("turn#1")
    assert rows.nth(2).get_attribute("data-depth") == "1"
    assert rows.count() < 60  # of 122: the rest is not on the screen
    page.reload()
    expect(rows.nth(2)).to_contain_text("turn#1")
    rows.nth(2).locator("[data-of-step]").click()
    page.wait_for_url(re.compile("run=turn%231"))
    scroller = page.get_by_role("group", name="Timeline")
    scroller.evaluate("one => one.scrollTo(0, one.scrollHeight)")
    expect(rows.last).to_contain_text("count")
    scroller.evaluate("one => one.scrollTo(0, 0)")
    page.get_by_role("button", name="120 step-runs of turn").click()
    expect(rows).to_have_count(3)
    rows.nth(2).locator("[data-of-step]").click()
    page.wait_for_url(re.compile("run=count%23120"))
