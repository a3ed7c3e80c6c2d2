"""The editor: problems at their lines, fixes, completion, trials and registration."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.browsing import Pages, Visitor, Workspace, needs_a_browser

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]

HOSTILE = "<img src=x onerror=window.hit=20>"


def playbook(path: str, more: str = "", target: str = "report") -> str:
    """Return a playbook of two steps, of which the first names the second."""
    return f"""\
apiVersion: noetl.io/v10
kind: Playbook
metadata:
  name: two
  path: {path}

workflow:
  - step: collect
    tool: {{ kind: noop, result: {{ rows: 3 }} }}
    next: {target}

  - step: report
    tool: {{ kind: noop, message: "{{{{ collect.rows }}}}" }}
{more}"""


def text_of(page: Page) -> Locator:
    """Return the text in the editor."""
    return page.get_by_role("textbox", name="Text of the playbook")


def write(page: Page, text: str) -> None:
    """Put another text into the editor, as a paste does."""
    text_of(page).click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def checked(page: Page, words: str) -> None:
    """Wait for the result of a check."""
    expect(page.get_by_role("status", name="Check")).to_have_text(words)


def kept(page: Page, path: str, words: str | None) -> None:
    """Wait until the draft of a path has these words, or is gone."""
    draft = None
    for _ in range(100):
        draft = page.evaluate("path => localStorage.getItem(`noetl.draft:${path}`)", path)
        if draft is None if words is None else words in (draft or ""):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"the draft of {path} is {draft}")


def store(seeded: Workspace, text: str) -> None:
    """Register a text beside the editor."""
    seeded.client.register(text)


def stored_text(page: Page, path: str) -> str:
    """Return the text of the latest version."""
    ask = "async path => (await (await fetch(`/api/catalog/playbook?path=${encodeURIComponent(path)}`)).json()).content"
    return str(page.evaluate(ask, path))


def test_a_problem_is_at_its_line_and_a_quick_fix_removes_it(visitor: Visitor) -> None:
    page = visitor.go("/edit")
    write(page, playbook("edit/typo", target="reprot"))
    checked(page, "1 error")
    problem = page.get_by_role("list", name="Problems").get_by_role("listitem")
    expect(problem).to_contain_text("10:11 NOE201")
    line = page.locator(".cm-line", has=page.locator(".cm-lintRange-error"))
    expect(line).to_have_text("    next: reprot")
    expect(page.locator(".cm-lintRange-error")).to_have_text("reprot")
    expect(page.get_by_role("button", name="Register…")).to_be_disabled()
    page.locator(".cm-lintRange-error").hover()
    tooltip = page.locator(".cm-tooltip .cm-diagnostic")
    expect(tooltip).to_contain_text("nowhere to go")
    expect(tooltip).to_contain_text("Name an existing step")
    tooltip.get_by_role("button", name="Write 'report'").click()
    checked(page, "no problems")
    expect(text_of(page)).to_contain_text("next: report")
    expect(page.get_by_role("button", name="Register…")).to_be_enabled()


def test_keys_go_to_the_next_problem_and_fix_it(visitor: Visitor) -> None:
    page = visitor.go("/edit")
    write(page, playbook("edit/keys", target="reprot"))
    checked(page, "1 error")
    page.keyboard.press("Control+Home")
    page.keyboard.press("F8")
    expect(page.locator(".cm-activeLine")).to_have_text("    next: reprot")
    expect(page.get_by_role("list", name="Problems").get_by_role("listitem")).to_have_attribute("aria-current", "true")
    page.keyboard.press("Control+.")
    checked(page, "no problems")
    page.wait_for_url("**line=10**")


def test_a_playbook_of_an_older_dialect_is_lifted_by_its_quick_fix(visitor: Visitor) -> None:
    page = visitor.go("/edit")
    write(
        page,
        """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: older, path: edit/older }
workflow:
  - step: collect
    tool: { kind: noop, result: { rows: 3 } }
    # many rows need a report
    case:
      - when: "{{ response.rows > 2 }}"
        then: { next: [{ step: report }] }
  - step: report
    tool: { kind: noop }
""",
    )
    problem = page.get_by_role("list", name="Problems").get_by_role("listitem")
    expect(problem).to_contain_text("NOE802")
    expect(page.get_by_role("button", name="Register…")).to_be_enabled()  # it runs as it is
    page.keyboard.press("Control+Home")
    page.keyboard.press("F8")
    page.keyboard.press("Control+.")
    checked(page, "no problems")
    expect(text_of(page)).to_contain_text("apiVersion: noetl.io/v10")
    expect(text_of(page)).to_contain_text("# many rows need a report")
    expect(text_of(page)).to_contain_text('when: "{{ outcome.result.rows > 2 }}"')
    expect(text_of(page)).not_to_contain_text("case:")


def test_what_can_be_written_is_offered_with_its_description(visitor: Visitor) -> None:
    page = visitor.go("/edit")
    write(page, playbook("edit/complete", more="  - step: more\n    tool: { kind: "))
    page.keyboard.type("no")
    offered = page.locator(".cm-tooltip-autocomplete")
    expect(offered.get_by_role("option").first).to_contain_text("noop")
    expect(page.locator(".cm-completionInfo")).to_contain_text("tool kind")
    page.keyboard.press("Enter")
    expect(text_of(page)).to_contain_text("{ kind: noop")


def test_letters_typed_into_the_text_are_no_shortcuts(visitor: Visitor) -> None:
    page = visitor.go("/edit")
    text_of(page).click()
    page.keyboard.press("Control+Home")
    page.keyboard.type("# g e ? \\ f")
    expect(page.locator(".cm-activeLine")).to_contain_text("# g e ? \\ f")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert "/edit" in page.url


def test_the_keyboard_leaves_the_text(visitor: Visitor) -> None:
    page = visitor.go("/edit")
    text_of(page).focus()
    page.keyboard.press("Tab")
    expect(text_of(page)).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(text_of(page)).not_to_be_focused()


def test_a_description_a_definition_a_rename_and_a_format(visitor: Visitor) -> None:
    page = visitor.go("/edit")
    write(page, playbook("edit/names"))
    checked(page, "no problems")
    named = page.locator(".cm-line", has_text="next: report")
    named.hover(position={"x": 110, "y": 10})  # on the name
    expect(page.locator(".cm-tooltip .cm-prose")).to_contain_text("step")
    named.click(position={"x": 110, "y": 10})
    page.keyboard.press("F12")
    expect(page.locator(".cm-activeLine")).to_have_text("  - step: report")
    page.keyboard.press("F2")
    page.get_by_label("New name").fill("summary")
    page.keyboard.press("Enter")
    expect(text_of(page)).to_contain_text("next: summary")
    expect(text_of(page)).to_contain_text("- step: summary")
    page.keyboard.press("Control+Home")
    page.keyboard.insert_text("\n\n\n")
    expect(page.locator(".cm-activeLine")).to_have_text("apiVersion: noetl.io/v10")
    page.keyboard.press("Shift+Alt+f")
    expect(page.locator(".cm-line").first).to_have_text("apiVersion: noetl.io/v10")


def test_a_line_and_its_node_follow_each_other_and_a_broken_text_keeps_the_graph(visitor: Visitor) -> None:
    page = visitor.go("/edit")
    write(page, playbook("edit/graph"))
    page.locator("[data-step=report]").click()
    expect(page.locator(".cm-activeLine")).to_have_text("  - step: report")
    expect(page.locator("[data-step=report]")).to_have_attribute("aria-pressed", "true")
    page.locator(".cm-line", has_text="step: collect").click()
    expect(page.locator("[data-step=collect]")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("End")
    page.keyboard.insert_text(": [")
    expect(page.get_by_text("cannot be read; this is the last graph")).to_be_visible()
    expect(page.locator("[data-old=true] [data-step=report]")).to_be_visible()


def test_a_new_playbook_runs_as_it_is_and_is_registered(visitor: Visitor) -> None:
    page = visitor.go("/edit")
    checked(page, "no problems")
    text_of(page).click()
    page.keyboard.press("Control+Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("list", name="Tasks that may run")).to_contain_text("greet")
    dialog.get_by_label("Workload (JSON)").fill('{"who": "Ada"}')
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("tabpanel")).to_contain_text("completed")
    expect(page.locator("[data-step=greet]")).to_have_attribute("data-state", "done")
    text_of(page).click()
    page.keyboard.press("Control+s")
    dialog.get_by_role("button", name="Register v1").click()
    page.wait_for_url("**/edit/examples/my_first**")
    expect(page.get_by_role("tab", name="Diff to v1")).to_be_visible()
    assert "step: greet" in stored_text(page, "examples/my_first")


def test_a_change_is_shown_before_it_is_registered(visitor: Visitor, seeded: Workspace) -> None:
    store(seeded, playbook("edit/change"))
    page = visitor.go("/edit/edit/change?step=report")
    expect(page.locator(".cm-activeLine")).to_have_text("  - step: report")
    page.locator(".cm-line", has_text="rows: 3").click()
    page.keyboard.press("End")
    page.keyboard.insert_text("  # three of them")
    checked(page, "no problems")
    page.keyboard.press("Control+s")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("region", name="Changes since v1")).to_contain_text(
        "+    tool: { kind: noop, result: { rows: 3 } }  # three"
    )
    dialog.get_by_role("button", name="Register v2").click()
    expect(page.get_by_role("status", name="Message")).to_have_text("Registered edit/change v2.")
    assert "# three of them" in stored_text(page, "edit/change")


def test_a_draft_survives_and_a_newer_version_is_merged_not_overwritten(visitor: Visitor, seeded: Workspace) -> None:
    text = playbook("edit/draft")
    store(seeded, text)
    page = visitor.go("/edit/edit/draft")
    page.locator(".cm-line", has_text="name: two").click()
    page.keyboard.press("End")
    page.keyboard.insert_text("  # mine")
    expect(page.get_by_text("draft on v1 ●")).to_be_visible()
    kept(page, "edit/draft", "# mine")
    store(seeded, text.replace("rows: 3", "rows: 4"))
    visitor.go("/edit/edit/draft")
    expect(text_of(page)).to_contain_text("# mine")
    page.get_by_role("button", name="Compare and merge…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("rows: 4")
    dialog.get_by_role("button", name="Merge v2 into mine").click()
    expect(text_of(page)).to_contain_text("# mine")
    expect(text_of(page)).to_contain_text("rows: 4")
    checked(page, "no problems")
    page.get_by_role("button", name="Register…").click()
    dialog.get_by_role("button", name="Register v3").click()
    expect(page.get_by_role("status", name="Message")).to_have_text("Registered edit/draft v3.")
    kept(page, "edit/draft", None)


def test_a_version_that_comes_while_the_dialog_is_open_is_not_overwritten(visitor: Visitor, seeded: Workspace) -> None:
    text = playbook("edit/late")
    store(seeded, text)
    page = visitor.go("/edit/edit/late")
    page.locator(".cm-line", has_text="name: two").click()
    page.keyboard.press("End")
    page.keyboard.insert_text("  # mine")
    checked(page, "no problems")
    page.get_by_role("button", name="Register…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Register v2")).to_be_visible()
    store(seeded, text.replace("rows: 3", "rows: 5"))
    dialog.get_by_role("button", name="Register v2").click()
    expect(dialog.get_by_role("button", name="Merge v2 into mine")).to_be_visible()
    expect(dialog).to_contain_text("rows: 5")
    assert "# mine" not in stored_text(page, "edit/late")


def test_hostile_text_stays_text_in_the_editor(visitor: Visitor) -> None:
    page = visitor.go("/edit")
    write(
        page,
        playbook(
            "edit/odd",
            target=f'"{HOSTILE}"',
            more=f'  - step: "{HOSTILE}2"\n    desc: "{HOSTILE}"\n    tool: {{ kind: "{HOSTILE}" }}\n',
        ),
    )
    problems = page.get_by_role("list", name="Problems")
    expect(problems).to_contain_text(HOSTILE)
    page.locator(".cm-lintRange-error").first.hover()
    expect(page.locator(".cm-tooltip .cm-diagnostic").first).to_contain_text(HOSTILE)
    page.locator(".cm-line", has_text="next:").click()
    page.keyboard.press("Control+Space")
    page.wait_for_timeout(500)  # what is not there cannot be waited for
    assert page.evaluate("window.hit") is None
    assert page.locator("img[src=x]").count() == 0


def test_a_viewer_reads_and_cannot_register(pages: Pages) -> None:
    with pages.visiting("viewer") as visitor:
        page = visitor.go("/edit/orders/nightly")
        expect(text_of(page)).to_contain_text("orders/nightly")
        checked(page, "no problems")
        for name in ("Register…", "Run…"):
            expect(page.get_by_role("button", name=name)).to_be_disabled()


def test_the_editor_is_not_loaded_with_the_first_screen(visitor: Visitor) -> None:
    asked: list[str] = []
    with visitor.hears("request", lambda request: asked.append(request.url)):
        visitor.go("/executions")
        assert [one for one in asked if "/assets/index" in one]
        assert not [one for one in asked if "/assets/Editor" in one]
        visitor.go("/edit")
        expect(text_of(visitor.page)).to_be_visible()
    assert [one for one in asked if "/assets/Editor" in one]
