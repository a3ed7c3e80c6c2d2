"""What every screen keeps at 1,280 × 800: its width, whole words, few requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
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


class Heard:
    """What a page asks the API for, streams apart."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.paths: list[str] = []
        self._pending: set[Request] = set()
        page.on("request", self._asked)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)

    def _asked(self, request: Request) -> None:
        path = re.sub(r"^https?://[^/]+", "", request.url)
        if path.startswith("/api/") and "/stream" not in path:
            self.paths.append(path)
            self._pending.add(request)

    def _ended(self, request: Request) -> None:
        self._pending.discard(request)

    @property
    def is_waiting(self) -> bool:
        return bool(self._pending)


def asked(pages: Mapping[Heard, Callable[[], Any]]) -> dict[Heard, set[str]]:
    """Return the addresses that pages ask for while each of them does a thing.

    What is not asked cannot be waited for: a page is done when all is answered, and 300 ms have brought nothing new. The pages
    wait at the same time.
    """
    for heard, does in pages.items():
        heard.paths.clear()
        does()
    done: dict[Heard, set[str]] = {}
    known = dict.fromkeys(pages, -1)
    while left := [heard for heard in pages if heard not in done]:
        for heard in left:
            known[heard] = len(heard.paths)
        left[0].page.wait_for_timeout(300)
        done |= {one: set(one.paths) for one in left if not one.is_waiting and len(one.paths) == known[one]}
    return done


def opened(url: str, paths: Mapping[Heard, str]) -> None:
    """Open screens and wait until they have asked for everything."""
    found = asked({heard: partial(heard.page.goto, url + path) for heard, path in paths.items()})
    assert all(found.values())
    for heard in paths:
        settled(heard.page)


def clicks(ids: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """Return screens and what is clicked on them, one after the other."""
    return {
        f"/executions/{ids['completed']}": (
            "[data-step=decide]", "role=tab[name='Input']", "role=tab[name='Why']", "role=tab[name='Attempts']",
            PANES + "Events/]", PANES + "State/]", PANES + "Result/]", PANES + "Timeline/]",
        ),
        f"/executions/{ids['failed']}": ("role=region[name='Why'] >> role=button",),
        "/playbooks/orders/nightly": (
            "role=tab[name='Executions']", "role=tab[name=/Versions/]", "role=tab[name='YAML']", "role=button[name='Run…'] >> nth=0",
        ),
        "/letters": ("role=navigation[name='Causes'] >> role=link >> nth=0",),
        "/executions": ("role=group[name='Status'] >> role=button[name=/failed/]",),
        "/": tuple(f"role=navigation >> role=link[name=/^{name}/]" for name in ("Playbooks", "Executions", "Dead letters", "Workers",
            "Outbox", "Credentials", "Audit", "Tokens", "Settings", "Home")),
    }  # fmt: skip


def test_a_click_asks_for_two_things_at_most(visitor: Visitor, seeded: Workspace) -> None:
    screens = clicks(seeded.ids)
    counted: dict[str, set[str]] = {}
    with visitor.windows(len(screens)) as windows:
        heard = {path: Heard(page) for path, page in zip(screens, windows, strict=True)}
        opened(visitor.url, {heard[path]: path for path in screens})
        for places in zip_longest(*screens.values()):
            clicked = {heard[path]: f"{path} {place}" for path, place in zip(screens, places, strict=True) if place}
            found = asked({one: one.page.locator(name.split(" ", 1)[1]).first.click for one, name in clicked.items()})
            counted |= {clicked[one]: paths for one, paths in found.items()}
    assert len(counted) == sum(map(len, screens.values()))
    assert any(counted.values())
    assert {click: paths for click, paths in counted.items() if len(paths) > 2} == {}


def test_dragging_the_scrubber_asks_for_the_moment_and_one_page_of_events(visitor: Visitor, seeded: Workspace) -> None:
    with visitor.windows(1) as (page,):
        drags(visitor.url, page, f"/executions/{seeded.ids['completed']}")


def drags(url: str, page: Page, path: str) -> None:
    """Drag the scrubber through an execution and check what was asked."""
    heard = Heard(page)
    opened(url, {heard: path})
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

    paths = asked({heard: drag})[heard]
    expect(page.get_by_text("As of event")).to_be_visible()
    assert page.url != before
    others = [path for path in paths if "/moment?" not in path and "/explain?seq=" not in path]
    assert len(others) <= 1  # what the pointer is over before it is pressed
    assert all("/events?after=0&limit=200" in path for path in others)
