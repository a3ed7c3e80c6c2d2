"""Fifty moments of five executions: the page shows what `noetl replay` prints."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Page, expect

from noetl.engine.queries.moment import step_state
from noetl.engine.state.execution import Execution
from tests.demo import ROOT
from tests.ui.browsing import UNTIL, Visitor, Workspace, needs_a_browser, states

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]

MOMENTS = 10
_AT = f"""async checksum => {{ {UNTIL}
    await until(() => document.querySelector("[data-checksum]")?.textContent.includes(checksum));
}}"""


@pytest.fixture(scope="module")
def ids(seeded: Workspace) -> dict[str, str]:
    """Return the seeded executions, and one whose loop writes to ctx."""
    seeded.client.register((ROOT / "examples" / "parameter_sweep.yaml").read_text(encoding="utf-8"))
    swept = seeded.start("examples/parameter_sweep", {"rates": [0.01, 0.03], "depths": [2, 4]})
    seeded.reaches(swept, "completed")
    return {**seeded.ids, "swept": swept}


def spread(head: int) -> list[int]:
    """Return moments from the first event to the last one, evenly."""
    return sorted({1 + round(at * (head - 1) / (MOMENTS - 1)) for at in range(MOMENTS)})


def shown_ctx(page: Page) -> dict[str, Any]:
    """Return the ctx that the page shows: names with simple values."""
    section = page.get_by_role("region", name="State").locator("section").first
    lines = section.locator("[class*=line]").evaluate_all("all => all.map(one => one.innerText)")
    pairs = (re.match(r"(\w+):\s+(\S+)", line) for line in lines)
    return {found[1]: json.loads(found[2]) for found in pairs if found}


def replay(seeded: Workspace, execution_id: str, seq: int) -> dict[str, Any]:
    """Return what `noetl replay --to SEQ --json` prints of a server's execution."""
    found = msgspec.to_builtins(seeded.client.state(execution_id, seq))
    printed: dict[str, Any] = {name: found[name] for name in ("seq", "event", "status", "checksum")} | found["state"]
    return printed


@pytest.mark.parametrize("name", ["completed", "failed", "partial", "waiting", "swept"])
def test_a_moment_shows_what_replay_prints(visitor: Visitor, seeded: Workspace, ids: dict[str, str], name: str) -> None:
    page = visitor.go(f"/executions/{ids[name]}?pane=state")
    page.locator("[data-checksum]").wait_for()
    slider = page.get_by_role("slider", name="Moment")
    moments = spread(int(slider.get_attribute("max") or 0))
    assert len(moments) == MOMENTS
    replays = [replay(seeded, ids[name], seq) for seq in moments]
    for seq, replayed in zip(moments, replays, strict=True):
        state = msgspec.json.decode(msgspec.json.encode(replayed), type=Execution)
        slider.fill(str(seq))
        page.evaluate(_AT, replayed["checksum"])
        expect(page.locator("[data-checksum]")).to_have_text(replayed["checksum"])
        expect(page.get_by_role("region", name="State")).to_contain_text(f"event {seq}")
        expect(page.locator("[data-execution-status]")).to_have_attribute("data-execution-status", replayed["status"])
        found = states(page)
        assert found == {step: step_state(state, step) or "not reached" for step in found}, seq
        assert shown_ctx(page) == replayed["ctx"], seq
    assert json.loads(seeded.noetl("replay", ids[name], "--to", str(moments[4]), "--json")) == replays[4]
    assert len(states(page)) >= 2
    assert (replays[0]["ctx"], bool(replays[-1]["ctx"])) == ({}, name == "swept")
