"""What every screen keeps at 1,280 × 800: its width, whole words, few requests."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

from tests.ui.browsing import LONG, LONG_NAMES, Visitor, Workspace, needs_a_browser
from tests.ui.test_safety import SCREENS, settled

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]

PANES = "role=tablist[name='Panes'] >> role=tab[name=/"
# Texts that an ancestor cuts off at its side, without a `title` that holds the whole of it.
CLIPPED = """() => {
    const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        if (!node.data.trim() || !node.parentElement.checkVisibility()) continue;
        range.selectNodeContents(node);
        const {right} = range.getBoundingClientRect();
        let isTold = false;
        for (let one = node.parentElement; one && one !== document.body; one = one.parentElement) {
            isTold ||= one.hasAttribute("title") || one.tagName === "OPTION";
            const {overflowX} = getComputedStyle(one), box = one.getBoundingClientRect();
            if (box.width <= 1 || overflowX === "auto" || overflowX === "scroll") break;
            if (overflowX === "visible" || right <= box.right + 1) continue;
            if (!isTold) found.push(node.data.trim().slice(0, 60));
            break;
        }
    }
    return found;
}"""


@pytest.fixture(scope="module")
def odd(seeded: Workspace) -> str:
    """Return an execution whose every name is long."""
    file = Path(seeded.folder) / "long.yaml"
    file.write_text(LONG_NAMES, encoding="utf-8")
    seeded.noetl("register", str(file))
    made = seeded.start(f"generated/{LONG}/{LONG}")
    seeded.reaches(made, "failed")
    return made


def test_no_screen_scrolls_sideways_or_clips_text_or_grows_too_large(
    visitor: Visitor, seeded: Workspace, odd: str
) -> None:
    wide, clipped, large = [], {}, {}
    long = (f"/executions/{odd}?step={LONG}_fails", f"/executions/{odd}?step={LONG}&pane=events", f"/executions/{odd}?pane=state",
            f"/playbooks/generated/{LONG}/{LONG}", f"/playbooks/generated/{LONG}/{LONG}?tab=executions")  # fmt: skip
    for path in (*SCREENS, *long, "/edit", "/edit/orders/nightly"):
        page = visitor.go(path.format(**seeded.ids))
        settled(page)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(path)
        clipped[path] = page.evaluate(CLIPPED)
        large[path] = page.evaluate("document.querySelectorAll('*').length")
    assert wide == []
    assert [f"{path}: {text}" for path, texts in clipped.items() for text in texts] == []
    assert {path: count for path, count in large.items() if count > 3_000} == {}


def test_a_clipped_text_is_seen(visitor: Visitor) -> None:
    page = visitor.go("/about")
    settled(page)
    page.evaluate(
        "() => { const one = document.createElement('p'); one.id = 'cut'; one.textContent = 'cut '.repeat(200);"
        " Object.assign(one.style, {overflow: 'hidden', whiteSpace: 'nowrap', width: '90px'});"
        " document.getElementById('content').prepend(one) }"
    )
    assert [text[:3] for text in page.evaluate(CLIPPED)] == ["cut"]
    page.evaluate("document.getElementById('cut').title = 'cut'")
    assert page.evaluate(CLIPPED) == []


def asked(page: Page, does: Callable[[], Any]) -> set[str]:
    """Return the addresses of the API that an action asks for, streams apart."""
    found: list[str] = []

    def heard(request: Request) -> None:
        path = re.sub(r"^https?://[^/]+", "", request.url)
        if path.startswith("/api/") and "/stream" not in path:
            found.append(path)

    page.on("request", heard)
    does()
    page.wait_for_timeout(300)  # what is not asked cannot be waited for
    page.remove_listener("request", heard)
    return set(found)


def opened(visitor: Visitor, path: str) -> Page:
    """Open a screen and wait until it has asked for everything."""
    if path.startswith("/executions/"):
        with visitor.page.expect_response(lambda answer: answer.url.endswith("/explain")):  # it comes last
            visitor.go(path)
    else:
        visitor.go(path)
    settled(visitor.page)
    return visitor.page


def test_a_click_asks_for_two_things_at_most(visitor: Visitor, seeded: Workspace) -> None:
    counted: dict[str, set[str]] = {}
    for path, clicks in {
        f"/executions/{seeded.ids['completed']}": (
            "[data-step=decide]", "role=tab[name='Input']", "role=tab[name='Why']", "role=tab[name='Attempts']",
            PANES + "Events/]", PANES + "State/]", PANES + "Result/]", PANES + "Timeline/]",
        ),
        f"/executions/{seeded.ids['failed']}": ("role=region[name='Why'] >> role=button",),
        "/playbooks/orders/nightly": (
            "role=tab[name='Executions']", "role=tab[name=/Versions/]", "role=tab[name='YAML']", "role=button[name='Run…'] >> nth=0",
        ),
        "/letters": ("role=navigation[name='Causes'] >> role=link >> nth=0",),
        "/executions": ("role=group[name='Status'] >> role=button[name=/failed/]",),
        "/": tuple(f"role=navigation >> role=link[name=/^{name}/]" for name in ("Playbooks", "Executions", "Dead letters", "Workers",
            "Outbox", "Credentials", "Audit", "Tokens", "Settings", "Home")),
    }.items():  # fmt: skip
        page = opened(visitor, path)
        for place in clicks:
            counted[f"{path} {place}"] = asked(page, page.locator(place).first.click)
    assert any(counted.values())
    assert {click: paths for click, paths in counted.items() if len(paths) > 2} == {}


def test_dragging_the_scrubber_asks_only_for_the_moment(visitor: Visitor, seeded: Workspace) -> None:
    page = opened(visitor, f"/executions/{seeded.ids['completed']}")
    slider = page.get_by_role("slider", name="Moment")
    expect(slider).to_be_visible()
    box = slider.bounding_box()
    assert box is not None
    before = page.url

    def drag() -> None:
        page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        for at in range(40):
            page.mouse.move(box["x"] + box["width"] * (1 - at / 50), box["y"] + box["height"] / 2)
        page.mouse.up()

    paths = asked(page, drag)
    expect(page.get_by_text("As of event")).to_be_visible()
    assert page.url != before
    assert [path for path in paths if "/moment?" not in path] == []
