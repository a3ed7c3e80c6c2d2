"""What every screen keeps at 1,280 × 800: its width, whole words, few requests."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

from tests.ui.browsing import Visitor, Workspace, needs_a_browser
from tests.ui.survey import CLIPPED, LONG_SCREENS, SCREENS, THEMES, Survey, settled

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]

PANES = "role=tablist[name='Panes'] >> role=tab[name=/"


def test_no_screen_scrolls_sideways_or_clips_text_or_grows_too_large(surveyed: Survey) -> None:
    for theme in THEMES:
        found = surveyed.of(theme)
        assert set(found) == {*SCREENS, *LONG_SCREENS}
        assert [path for path, one in found.items() if one.is_wide] == []
        assert [f"{path}: {text}" for path, one in found.items() for text in one.clipped] == []
        assert {path: one.elements for path, one in found.items() if one.elements > 3_000} == {}


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


def asked(visitor: Visitor, does: Callable[[], Any]) -> set[str]:
    """Return the addresses of the API that an action asks for, streams apart.

    What is not asked cannot be waited for: it ends when all is answered, and 300 ms have brought nothing new.
    """
    found: list[str] = []
    pending: set[Request] = set()

    def heard(request: Request) -> None:
        path = re.sub(r"^https?://[^/]+", "", request.url)
        if path.startswith("/api/") and "/stream" not in path:
            found.append(path)
            pending.add(request)

    def ended(request: Request) -> None:
        pending.discard(request)

    with (
        visitor.hears("request", heard),
        visitor.hears("requestfinished", ended),
        visitor.hears("requestfailed", ended),
    ):
        does()
        known = -1
        while pending or known < len(found):
            known = len(found)
            visitor.page.wait_for_timeout(300)
    return set(found)


def opened(visitor: Visitor, path: str) -> Page:
    """Open a screen and wait until it has asked for everything."""
    assert asked(visitor, lambda: visitor.go(path))
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
            counted[f"{path} {place}"] = asked(visitor, page.locator(place).first.click)
    assert any(counted.values())
    assert {click: paths for click, paths in counted.items() if len(paths) > 2} == {}


def test_dragging_the_scrubber_asks_for_the_moment_and_one_page_of_events(visitor: Visitor, seeded: Workspace) -> None:
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

    paths = asked(visitor, drag)
    expect(page.get_by_text("As of event")).to_be_visible()
    assert page.url != before
    others = [path for path in paths if "/moment?" not in path and "/explain?seq=" not in path]
    assert len(others) <= 1  # what the pointer is over before it is pressed
    assert all("/events?after=0&limit=200" in path for path in others)
