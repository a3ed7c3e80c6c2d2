"""Editor features over HTTP: offsets as pages count them, limits, one reading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import pytest_asyncio

from noetl.settings import ServerSettings
from noetl.wiring.checks import ask_language
from tests.corpus.hostile import DOCUMENTS
from tests.server.serving import ONE, TWO, Served, in_process

pytestmark = pytest.mark.asyncio(loop_scope="module")
PATIENT = ServerSettings(check_s=600)
# A wide character before every place that is asked about.
TYPO = TWO.replace("name: two", "name: two, description: 😀").replace("next: two", "next: tow")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with in_process(tmp_path_factory.mktemp("language"), PATIENT) as one:
        yield one


def units(text: str, offset: int) -> int:
    """Return an offset as a page counts it."""
    return len(text[:offset].encode("utf-16-le")) // 2


def part(text: str, start: int, end: int) -> str:
    """Return a part of a text by the offsets of a page."""
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")


def edited(text: str, edits: list[dict[str, Any]]) -> str:
    """Return a text with edits made as a page makes them."""
    data = text.encode("utf-16-le")
    for one in sorted(edits, key=lambda edit: int(edit["start"]), reverse=True):
        data = data[: 2 * one["start"]] + one["text"].encode("utf-16-le") + data[2 * one["end"] :]
    return data.decode("utf-16-le")


async def ask(served: Served, feature: str, content: str, status: int = 200, **more: Any) -> Any:
    return await served.json("POST", f"/api/language/{feature}", {"content": content, **more}, status)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
async def test_a_diagnostic_has_its_range_its_reason_and_a_fix_that_removes_it(served: Served, mark: str) -> None:
    text = mark + TYPO
    told = await ask(served, "check", text)
    found = next(one for one in told["diagnostics"] if one["severity"] == "error")
    assert part(text, found["start"], found["end"]) == "tow"
    assert all((found["code"], found["why"], found["fix"], found["line"] == TYPO[: TYPO.index("tow")].count("\n") + 1))
    (fix,) = found["fixes"]
    mended = edited(text, fix["edits"])
    assert mended == text.replace("tow", "two")
    assert not [one for one in (await ask(served, "check", mended))["diagnostics"] if one["severity"] == "error"]


async def test_the_diagnostics_are_those_of_a_registration(served: Served) -> None:
    for text in (TYPO, ONE, "workflow: [", ONE.replace("noop", "nop")):
        told = await served.http.post("/api/catalog", json={"content": text, "check_only": True})
        registered = told.json()["diagnostics" if told.is_success else "errors"]
        checked = (await ask(served, "check", text))["diagnostics"]
        assert (
            [{key: one[key] for key in registered[0]} for one in checked] == registered if registered else not checked
        )


async def test_the_outline_has_steps_and_tasks_at_their_places(served: Served) -> None:
    told = await ask(served, "check", TYPO)
    assert told["whole"]
    workflow = next(one for one in told["symbols"] if one["name"] == "workflow")
    assert [part(TYPO, one["name_start"], one["name_end"]) for one in workflow["children"]] == ["one", "two"]
    assert all(one["end"] <= two["start"] for one, two in pairwise(workflow["children"]))
    assert not (await ask(served, "check", "workflow: ["))["whole"]


async def test_the_graph_is_that_of_the_registered_playbook(served: Served) -> None:
    registered = await served.json("POST", "/api/catalog", {"content": TWO})
    stored = await served.json("GET", f"/api/playbooks/{registered['playbook']}/graph")
    assert (await ask(served, "check", TWO))["graph"] == stored
    moved = (await ask(served, "check", f"# a comment\n{TWO}"))["graph"]
    assert [node["line"] for node in moved["nodes"]] == [node["line"] + 1 for node in stored["nodes"]]


async def test_a_text_with_errors_has_a_graph_and_an_unreadable_one_none(served: Served) -> None:
    graph = (await ask(served, "check", TYPO))["graph"]
    assert [(node["name"], node["known"]) for node in graph["nodes"]] == [("one", True), ("two", True), ("tow", False)]
    assert graph["hash"] == ""
    for text in ("workflow: [", "", TWO.replace("next: two", "next: [two")):
        assert (await ask(served, "check", text))["graph"] is None


async def test_a_completion_replaces_what_is_typed(served: Served) -> None:
    text = TYPO.replace("kind: noop}", "kind: no}")
    cursor = text.index("kind: no}") + len("kind: no")
    told = await ask(served, "complete", text, offset=units(text, cursor))
    item = next(one for one in told["items"] if one["label"] == "noop")
    assert (item["kind"], bool(item["detail"]), bool(item["text"])) == ("kind", True, True)
    made = edited(text, [{"start": told["start"], "end": told["end"], "text": item["insert"]}])
    assert made == text[: cursor - 2] + "noop" + text[cursor:]


async def test_hover_describes_the_kind_at_a_place(served: Served) -> None:
    told = await ask(served, "hover", TYPO, offset=units(TYPO, TYPO.index("noop")))
    assert part(TYPO, told["hover"]["start"], told["hover"]["end"]) == "noop"
    assert "tool kind" in told["hover"]["text"]
    assert (await ask(served, "hover", TYPO, offset=10**9))["hover"] is None


async def test_a_definition_and_its_mentions_are_found(served: Served) -> None:
    text = TYPO.replace("tow", "two")
    told = await ask(served, "definition", text, offset=units(text, text.index("next: two") + 7))
    (place,) = told["definitions"]
    assert part(text, place["start"] - len("step: "), place["end"]) == "step: two"
    assert len(told["mentions"]) == 2


async def test_a_rename_tells_its_target_then_edits_every_mention(served: Served) -> None:
    text = TYPO.replace("tow", "two")
    offset = units(text, text.index("step: two") + 7)
    told = await ask(served, "rename", text, offset=offset)
    assert (told["name"], told["edits"]) == ("two", [])
    assert part(text, told["target"]["start"], told["target"]["end"]) == "two"
    told = await ask(served, "rename", text, offset=offset, name="last")
    assert edited(text, told["edits"]) == text.replace("step: two", "step: last").replace("next: two", "next: last")
    assert (await ask(served, "rename", text, offset=0))["target"] is None
    refused = await ask(served, "rename", text, 422, offset=offset, name="one")
    assert "already exists" in refused["detail"]


async def test_a_text_is_formatted_by_edits(served: Served) -> None:
    text = ONE.replace("kind: Playbook", "kind:    Playbook  # 😀")
    made = edited(text, (await ask(served, "format", text))["edits"])
    assert "kind: Playbook # 😀" in made.replace("  #", " #")
    assert (await ask(served, "format", made))["edits"] == []


async def test_answers_are_not_masked(served: Served) -> None:
    text = ONE.replace('{"n":1}', '{"n":    1, "password": "hunter2"}')
    made = edited(text, (await ask(served, "format", text))["edits"])
    assert "hunter2" in made


async def test_a_check_that_takes_too_long_is_refused(tmp_path: Path) -> None:
    async with in_process(tmp_path, ServerSettings(check_s=0.05)) as served:
        hostile = DOCUMENTS["unknown arcs"](1_000_000)
        for feature, more in (("check", {}), ("complete", {"offset": 5}), ("format", {})):
            told = await ask(served, feature, hostile, 422, **more)
            assert told["type"].endswith("#too-complex")
            assert "NOETL_CHECK_SECONDS" in told["fix"]


async def test_the_event_loop_runs_while_a_text_is_checked(served: Served) -> None:
    await ask(served, "check", ONE)  # a child is there now
    begun, turns = monotonic(), 0
    asked = asyncio.create_task(ask(served, "check", DOCUMENTS["unknown arcs"](150_000)))
    while not asked.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > (monotonic() - begun) * 1000 / 20


async def test_the_last_texts_are_kept() -> None:
    text = TYPO + "# another text\n"
    checked = ask_language("check", text)
    for number in range(31):
        ask_language("hover", f"{ONE}# {number}\n", 3)
    assert ask_language("check", text) is checked
    for number in range(32):
        ask_language("hover", f"{ONE}# {number}\n", 3)
    assert ask_language("check", text) is not checked
