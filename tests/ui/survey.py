"""One pass over every screen, light and dark: barriers, widths, clipped texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from playwright.sync_api import CDPSession, Page, expect

from tests.ui.browsing import AXE, LONG, Visitor

SCREENS = (
    "/", "/executions", "/executions/{completed}?step=decide&zoom=0-40", "/executions/{failed}?step=divide&pane=events",
    "/executions/{partial}?at=20&pane=state", "/executions/{waiting}?step=ask&tab=why", "/executions/{completed}?pane=result",
    "/executions/{partial}?pane=items&step=items&item=3", "/executions/{partial}?pane=items&sort=slow",
    "/executions/{failed}?pane=logs&step=divide&tab=logs", "/executions/{completed}?pane=children",
    "/executions/{failed}/compare/{completed}",
    "/playbooks", "/playbooks/orders/nightly", "/playbooks/orders/nightly?tab=yaml", "/playbooks/orders/nightly?tab=executions",
    "/letters", "/workers", "/schedules", "/outbox", "/credentials", "/audit", "/tokens", "/people", "/about", "/settings",
    "/edit", "/edit/orders/nightly",
)  # fmt: skip
LONG_SCREENS = (
    f"/executions/{{long}}?step={LONG}_fails", f"/executions/{{long}}?step={LONG}&pane=events", "/executions/{long}?pane=state",
    f"/playbooks/generated/{LONG}/{LONG}", f"/playbooks/generated/{LONG}/{LONG}?tab=executions",
)  # fmt: skip
THEMES: Final[Sequence[Literal["light", "dark"]]] = ("light", "dark")
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
# `asking` counts the requests of the page: see `ASKING`.
SETTLED = """async () => {
    const late = performance.now() + 60_000, isCalm = () => !window.asking && !document.querySelector("[role=status][aria-label=Loading]");
    for (let calm = 0; calm < 2; calm = isCalm() ? calm + 1 : 0) {
        if (performance.now() > late) throw new Error("the screen still loads after 60 s");
        await new Promise(requestAnimationFrame);
    }
}"""
LOOK = """() => ({
    theme: document.documentElement.dataset.theme,
    is_titled: document.querySelector("h1")?.checkVisibility() ?? false,
    is_wide: document.documentElement.scrollWidth > innerWidth,
    elements: document.querySelectorAll("*").length,
})"""


@dataclass(frozen=True)
class Seen:
    """A screen in one theme."""

    theme: str
    is_titled: bool
    is_wide: bool
    elements: int
    clipped: Sequence[str] = ()
    barriers: Sequence[str] = ()


@dataclass
class Survey:
    """What was seen of each screen, by its path and theme."""

    seen: dict[tuple[str, str], Seen] = field(default_factory=dict)

    def of(self, theme: str) -> dict[str, Seen]:
        return {path: one for (path, named), one in self.seen.items() if named == theme}


def settled(page: Page) -> None:
    """Wait until a screen has its content: two frames after the last answer."""
    page.evaluate(SETTLED)


def survey(visitor: Visitor, ids: dict[str, str]) -> Survey:
    """Visit every screen once and switch its theme; the browser must not animate."""
    made = Survey()
    page = visitor.go("/")
    axe = page.context.new_cdp_session(page)
    axe.send("Runtime.evaluate", {"expression": AXE.read_text() if AXE.exists() else ""})
    switch = page.get_by_title("Switch the theme")
    for path in (*SCREENS, *LONG_SCREENS):
        visitor.show(path.format(**ids))
        settled(page)
        for theme in THEMES:
            expect(page.locator("html")).to_have_attribute("data-theme", theme)
            made.seen[path, theme] = Seen(
                **page.evaluate(LOOK),
                clipped=page.evaluate(CLIPPED),
                barriers=serious(axe, theme) if path in SCREENS else (),
            )
            switch.click()
    return made


def serious(axe: CDPSession, theme: str) -> list[str]:
    """Return what axe-core finds to be serious or critical; in the dark, of colours."""
    if not AXE.exists():
        return []
    rules = "runOnly: ['color-contrast'], " if theme == "dark" else ""
    run = f"axe.run(document, {{{rules}resultTypes: ['violations'], selectors: false}}).then(found => JSON.stringify(found.violations))"
    found: dict[str, Any] = axe.send("Runtime.evaluate", {"expression": run, "awaitPromise": True})
    return [
        f"{one['id']}: {node['html'][:160]} {node['any'][0]['message'] if node['any'] else ''}"
        for one in json.loads(found["result"]["value"])
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
