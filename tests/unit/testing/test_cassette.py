"""Cassettes: errors and last results of a log, replayed in order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import pytest

from noetl.dsl.tree.playbook import Step, Task
from noetl.masking.values import MASK
from noetl.model.errors import InvalidInput
from noetl.testing.cases.cassettes.cassette import fetched, read_cassette, written
from noetl.testing.cases.cassettes.recording import Log, cassette, masked, results_of
from noetl.testing.cases.files.read import Given, read_tests
from noetl.testing.cases.player.player import PlayResult, play
from tests.unit.testing.test_cases import stage

PLAYBOOK = """
workload: {n: 1}
workflow:
  - step: ask
    tool: {kind: wait, signal: go}
    next: fetch
  - step: fetch
    tool:
      - get: {kind: http, url: "http://127.0.0.1/{{ workload.n }}"}
      - check:
          kind: python
          args: {n: "{{ get.n }}"}
          code: "result = n"
    next: items
  - {step: items, loop: {in: [1, 2], iterator: x}, tool: {kind: http, url: "http://127.0.0.1/{{ x }}"}}
"""
TESTS = """
workload: {n: 5, api_key: abcdefghijk}
messages: [{at: 2h, signal: go, data: {by: ada}}]
mocks:
  fetch.get: [{error: {kind: server_error, code: HTTP_503, retryable: true}}, {ok: {n: 7}, takes: 3}]
  fetch.check: {ok: 8}
  items: {items: {0: {ok: a}, 1: [{error: {kind: timeout, retryable: true}}, {ok: "b {{ '{{' }} x }}"}]}}
tests: [{name: one, expect: {status: completed}}]
"""


async def nothing(reference: Mapping[str, Any]) -> Any:
    raise AssertionError(f"nothing was stored, and {reference} is asked for")


def recorded(playbook: str = PLAYBOOK, tests: str = TESTS) -> tuple[dict[str, Any], PlayResult]:
    given = read_tests(dedent(tests).encode(), "play.test.yaml", "play.test.yaml").cases[0].given
    made = stage(playbook)
    seen = play(made, given)
    return asyncio.run(cassette(Log(made.main.tree, seen.events), [], nothing)), seen


def test_a_play_of_a_cassette_is_the_play_it_was_made_of() -> None:
    made, before = recorded()
    tape = read_cassette(written(made).encode(), "x.cassette.yaml")
    given, answers = tape.given(Given())
    after = play(stage(PLAYBOOK), given, answers)
    assert after.problems == []
    assert (after.status, after.state.result) == (before.status, before.state.result)
    assert [(str(call.site), call.attempt) for call in after.calls] == [
        (str(call.site), call.attempt) for call in before.calls
    ]
    assert after.state.result["results"] == ["a", "b {{ x }}"]  # what was recorded is no template
    took = [seen.events[-1].timestamp - seen.events[0].timestamp for seen in (before, after)]
    assert abs(took[0] - took[1]) < 1_000


def test_every_visit_has_its_own_answers_also_in_children_at_once() -> None:
    parent = "workflow: [{step: all, loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel}}, CALL}]".replace(
        "CALL", 'tool: {kind: playbook, path: test/child1, input: {n: "{{ n }}"}}'
    )
    child = "workload: {n: 0}\nworkflow: [{step: ask, tool: {kind: http, url: 'http://127.0.0.1/{{ workload.n }}'}}]"
    made = stage(parent, child)
    busy = {"error": {"kind": "timeout", "retryable": True}}
    given = Given(mocks={"ask": [busy, {"ok": "a"}, busy, {"ok": "b"}, {"ok": "c"}]})
    before = play(made, given)
    logs = [Log(one.tree, events) for one in made.others for _, events in before.children]
    tape = asyncio.run(cassette(Log(made.main.tree, before.events), logs, nothing))
    assert sorted(call.get("visit", 1) for call in tape["calls"]) == [
        1, 1, 2, 3, 3,
    ]  # the first and the third were busy  # fmt: skip
    laid, answers = read_cassette(written(tape).encode(), "x").given(Given())
    after = play(made, laid, answers)
    assert after.problems == []
    assert after.state.result == before.state.result
    assert sorted(before.state.result["results"]) == ["a", "b", "c"]


def test_it_holds_errors_times_messages_and_no_secret() -> None:
    made, _ = recorded()
    assert made["workload"] == {"n": 5, "api_key": MASK}
    [said] = made["messages"]
    assert (said["signal"], said["data"], 7_200 <= said["at"] < 7_201) == ("go", {"by": "ada"}, True)
    first, second = (call for call in made["calls"] if call["call"] == "test/play:fetch.get")
    assert (first["error"]["code"], first["http"]) == ("HTTP_503", {"status": 503})
    assert second["ok"] == {"n": 7}
    assert 3.0 <= second["takes"] < 3.1
    assert "notes" not in made


def test_what_a_log_does_not_tell_is_said() -> None:
    failing = TESTS.replace("fetch.check: {ok: 8}", "fetch.check: {error: python}")
    made, _ = recorded(tests=failing)
    assert made["notes"] == ["the result of `test/play:fetch.get` is not recorded: a later task of its step failed"]
    assert made["status"] == "failed"


@pytest.mark.parametrize(
    ("labels", "result", "found"),
    [
        (["s_task"], {"a": 1}, {"s_task": {"a": 1}}),
        (["own"], 3, {"own": 3}),
        (["own"], {"own": {"a": 1}, "results": {"own": {"a": 1}}, "a": 1}, {"own": {"a": 1}}),
        (["one", "two"], {"one": 1, "two": 2, "results": {"one": 1, "two": 2}, "data": 2}, {"one": 1, "two": 2}),
        (["one", "two"], {"one": 1, "two": {"results": []}, "results": []}, {"one": 1, "two": {"results": []}}),
    ],
)
def test_results_by_label(labels: list[str], result: Any, found: dict[str, Any]) -> None:
    step = Step("s", tuple(Task(label, "noop", {}) for label in labels))
    assert results_of(step, result) == found


def test_secrets_are_masked_by_name() -> None:
    data = {"token": "abc", "next_token": "p2", "a": [{"Authorization": "Bearer x"}], "b": "password=hunter22 ok"}
    assert masked(data) == {
        "token": MASK,
        "next_token": "p2",
        "a": [{"Authorization": MASK}],
        "b": f"password={MASK} ok",
    }


def test_what_is_no_cassette_is_refused() -> None:
    for text in (b"a: 1", b"- 1", b"a: [", b"cassette: 2"):
        with pytest.raises(InvalidInput, match=r"x\.yaml is (not a cassette|not YAML)"):
            read_cassette(text, "x.yaml")


def test_a_manifest_is_fetched_part_by_part() -> None:
    manifest = {
        "kind": "manifest_ref",
        "ref": "noetl://m",
        "strategy": "append",
        "parts": [{"ref": "noetl://1", "count": 2}, {"value": [3], "count": 1}],
    }

    async def get(ref: str) -> bytes:
        assert ref == "noetl://1"
        return b"[1, 2]"

    assert asyncio.run(fetched(manifest, get)) == [[1, 2], [3]]
