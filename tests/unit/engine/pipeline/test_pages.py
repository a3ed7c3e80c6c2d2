"""Pages of a task: how they are kept, limited and sent."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.pipeline.pages import added, room
from noetl.engine.tasks.memory import Held
from noetl.model.errors import BadReference
from noetl.model.outcome import failed, ok
from tests.unit.engine.pipeline.piping import Run, tasks

PAGES = """
- page:
    kind: noop
    spec:
      result: {strategy: STRATEGY, inline_max_bytes: 100}
      policy:
        rules:
          - when: "{{ outcome.status == 'error' }}"
            then: {do: jump, to: page}
          - when: "{{ outcome.result.more }}"
            then: {do: jump, to: page}
          - else: {then: {do: continue}}
- last: {kind: noop, input: {seen: "{{ page }}"}}
"""
OUTCOMES = [ok({"more": 1, "a": [1]}), ok({"more": 2, "b": 2}), failed("unknown", "lost"), ok({"more": 0, "a": [3]})]


def away(number: int, **more: Any) -> dict[str, Any]:
    return {"kind": "result_ref", "ref": f"noetl://execution/1/p{number}", "store": "db", "meta": {"bytes": 50}, **more}


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("append", [{"more": 1, "a": [1]}, {"more": 2, "b": 2}, {"more": 0, "a": [3]}]),
        ("merge", {"more": 0, "a": [3], "b": 2}),
        ("replace", {"more": 0, "a": [3]}),
    ],
)
def test_later_tasks_see_all_pages_also_after_a_crash(strategy: str, expected: Any, carried: bool) -> None:
    run = Run(tasks(PAGES.replace("STRATEGY", strategy)), {"page": list(OUTCOMES)}, carried=carried)
    found = run.result()
    assert run.ran[-1].input["seen"] == expected
    assert found.result["page"] == found.result["results"]["page"] == expected
    assert run.events.count("result.manifest.updated") == 3


def test_a_page_has_the_room_that_the_pages_before_it_left() -> None:
    run = Run(tasks(PAGES.replace("STRATEGY", "append")), {"page": list(OUTCOMES)})
    run.result()
    left = [task.spec["result"]["inline_max_bytes"] for task in run.ran if task.label == "page"]
    assert left == [100, 82, 66, 66]
    assert room(None, None) == {"inline_max_bytes": 64 * 1024}
    assert room({"inline_max_bytes": 3}, added(None, "x" * 10, None, ("append", None)))["inline_max_bytes"] == 0


def test_what_travels_is_the_value_until_a_page_was_put_away() -> None:
    first = added(None, {"rows": [1]}, None, ("concat", "rows"))
    assert first.kept == [1]
    second = added(first, {"rows": [2, 3]}, away(2, expires_at=9, scope="step"), ("concat", "rows"))
    third = added(second, {"rows": [4]}, away(3, expires_at=7, scope="step"), ("concat", "rows"))
    assert third.value == [1, 2, 3, 4]
    assert third.kept["kind"] == "manifest_ref"
    assert third.kept["ref"] != second.kept["ref"]
    assert [part.get("ref") for part in third.kept["parts"]] == [None, away(2)["ref"], away(3)["ref"]]
    told = {name: third.kept[name] for name in ("total", "strategy", "merge_path", "expires_at", "scope", "preview")}
    assert told == {
        "total": 4, "strategy": "concat", "merge_path": "rows", "expires_at": 7, "scope": "step",
        "preview": '{"rows":[1]}',
    }  # fmt: skip
    loaded = Held.of(third.as_data(), lambda stored: ["loaded", stored["ref"]])
    assert loaded == Held(["loaded", third.kept["ref"]], pages=third.pages)


def test_what_was_handed_out_is_not_changed_by_the_next_page() -> None:
    first = added(None, [1], None, ("concat", None))
    added(first, [2], None, ("concat", None))
    assert first.value == [1]


def test_a_page_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BadReference, match="is not a list"):
        added(None, {"a": 1}, None, ("concat", None))
    with pytest.raises(BadReference, match="is not a map"):
        added(added(None, {"a": 1}, None, ("merge", None)), [1], None, ("merge", None))
