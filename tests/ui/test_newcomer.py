"""The first look in the browser, click by click as its page tells it."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.demo import ROOT
from tests.ui.browsing import needs_a_browser, visiting

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]

TOLD = ROOT / "docs" / "tutorials" / "first-look.md"
# Where a word of a line is on the screen.
PLACE = """(line, word) => {
    const range = document.createRange(), walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        const at = node.data.indexOf(word);
        if (at < 0) continue;
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        const {x, y, width, height} = range.getBoundingClientRect();
        return [x + width / 2, y + height / 2];
    }
}"""
STEPS: list[tuple[str, Callable[[Page], None]]] = []


def click(words: str) -> Callable[[Callable[[Page], None]], Callable[[Page], None]]:
    """Add what a reader does at a number of the page, in these words."""

    def added(does: Callable[[Page], None]) -> Callable[[Page], None]:
        STEPS.append((words, does))
        return does

    return added


def button(page: Page | Locator, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def retype(page: Page, word: str, other: str) -> None:
    """Double-click a word of the step `shout`, and type another one."""
    line = page.locator(".cm-line", has_text=f"| {word} }}}}")
    x, y = line.evaluate(PLACE, word)
    page.mouse.dblclick(x, y)
    page.keyboard.type(other)
    page.keyboard.press("Escape")  # no completion
    expect(page.locator(".cm-activeLine")).to_contain_text(f"| {other} }}}}")


def register(page: Page, version: int) -> None:
    button(page, "Register…").click()
    button(page.get_by_role("dialog"), f"Register v{version}").click()
    expect(page.get_by_role("status", name="Message")).to_have_text(f"Registered examples/hello v{version}.")


def in_the_title(page: Page) -> None:
    page.get_by_role("heading", level=1).get_by_role("link", name="examples/hello").click()
    page.wait_for_url("**/playbooks/examples/hello")


def step(page: Page, name: str, state: str) -> None:
    expect(page.locator(f"[data-step={name}]")).to_have_attribute("data-state", state)


@click("Type `make demo` in a terminal, and open the link that it prints.")
def _open(page: Page) -> None:
    expect(page.get_by_role("list", name="Needs you")).to_contain_text("examples/release")


@click("Under *Recent executions*, click **Run…** in the row of `examples/hello`.")
def _choose(page: Page) -> None:
    row = page.get_by_role("table", name="Recent executions").get_by_role("row").filter(has_text="examples/hello")
    run = row.get_by_text("Run…")
    expect(run).to_be_in_viewport(ratio=1)
    run.click()


@click("Write `everybody out there` into *who*, and click **Run**.")
def _run(page: Page) -> None:
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("who").fill("everybody out there")
    button(dialog, "Run").click()
    page.wait_for_url("**/executions/*")
    step(page, "shout", "done")
    step(page, "say", "not reached")


@click("Click the step **greet** in the graph.")
def _greet(page: Page) -> None:
    page.locator("[data-step=greet]").click()
    expect(page.get_by_label("Step greet", exact=True)).to_be_visible()


@click("Click **Why**.")
def _why(page: Page) -> None:
    page.get_by_role("tab", name="Why").click()
    panel = page.get_by_label("Step greet", exact=True)
    expect(panel).to_contain_text("greet.text | length > 20")
    expect(panel).to_contain_text('"Hello, everybody out there!"')


@click("Click `examples/hello` in the title, then **Edit**.")
def _edit(page: Page) -> None:
    in_the_title(page)
    button(page, "Edit").click()
    expect(page.get_by_role("status", name="Check")).to_have_text("no problems")


@click("Double-click `upper` in the step `shout`, and type `uper`.")
def _break(page: Page) -> None:
    retype(page, "upper", "uper")
    expect(page.locator(".cm-lintRange-error")).to_have_text("uper")
    expect(page.get_by_role("list", name="Problems")).to_contain_text("Unknown filter uper")
    expect(button(page, "Register…")).to_be_disabled()


@click("Click **Write 'upper'**.")
def _mend(page: Page) -> None:
    button(page, "Write 'upper'").click()
    expect(page.get_by_role("status", name="Check")).to_have_text("no problems")


@click("Double-click `upper` again, and type `round`: a filter for numbers, which no check can know to be wrong here.")
def _mislead(page: Page) -> None:
    retype(page, "upper", "round")
    expect(page.get_by_role("status", name="Check")).to_have_text("no problems")


@click("Click **Register…**, then **Register v2**.")
def _store(page: Page) -> None:
    register(page, 2)


@click("Click `examples/hello` in the title, then **Run…**.")
def _again(page: Page) -> None:
    in_the_title(page)
    button(page, "Run…").first.click()


@click("Click **Like last time**, then **Run**.")
def _like_last_time(page: Page) -> None:
    dialog = page.get_by_role("dialog")
    button(dialog, "Like last time").click()
    expect(dialog.get_by_label("who")).to_have_value("everybody out there")
    button(dialog, "Run").click()
    page.wait_for_url("**/executions/*")
    expect(page.get_by_role("region", name="Why")).to_contain_text("`round` takes a number, not a string")


@click("Click **shout#1** in the red line.")
def _failed(page: Page) -> None:
    button(page.get_by_role("region", name="Why"), "shout#1").click()
    expect(page.get_by_label("Step shout", exact=True)).to_contain_text("`round` takes a number")


@click("Click **line 16** in the panel, which opens the editor at the step.")
def _line(page: Page) -> None:
    page.get_by_role("link", name="line 16").click()
    expect(page.locator(".cm-activeLine")).to_have_text("  - step: shout")


@click("Double-click `round`, and type `upper`.")
def _correct(page: Page) -> None:
    retype(page, "round", "upper")


@click("Click **Register…**, then **Register v3**.")
def _store_it(page: Page) -> None:
    register(page, 3)


@click("Go back in the browser to the failed execution.")
def _back(page: Page) -> None:
    page.go_back()
    step(page, "shout", "failed")


@click("Click **Retry…**, tick *Use the latest version of the playbook*, and click **Retry**.")
def _retry(page: Page) -> None:
    failed = page.url
    button(page, "Retry…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Use the latest version of the playbook").check()
    button(dialog, "Retry").click()
    page.wait_for_url(lambda url: "/executions/" in url and url != failed)
    step(page, "shout", "done")
    expect(page.locator("[data-execution-status]")).to_have_attribute("data-execution-status", "completed")


@click("Click **Result**.")
def _result(page: Page) -> None:
    page.get_by_role("tab", name="Result").click()
    expect(page.get_by_role("tabpanel").last).to_contain_text("HELLO, EVERYBODY OUT THERE!")


def test_the_page_tells_what_is_clicked_here() -> None:
    told = re.findall(r"^(\d+)\. (.+)$", TOLD.read_text(encoding="utf-8"), re.MULTILINE)
    assert told == [(str(at), words) for at, (words, _does) in enumerate(STEPS, 1)]


def test_a_newcomer_finds_the_way_from_the_link_to_the_repaired_execution(browser: Browser, demo: Future[str]) -> None:
    url, _, token = demo.result().partition("/?token=")
    with visiting(browser, url, token) as newcomer:
        for _words, does in STEPS:
            does(newcomer.page)
