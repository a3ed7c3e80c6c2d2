"""Long loops: lists read by range, results stored on the way, a small state."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.queries.execution_fork import fork, shared
from noetl.engine.routing import loop_results
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import checksum, dump
from noetl.model.manifest import combined
from noetl.testing.play import Script

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: t, path: t/t}\n"


def loop(given: str, more: str = "", mode: str = "parallel") -> str:
    return f"""{HEAD}workflow:
  - step: each
    loop: {{in: "{given}", iterator: n, spec: {{mode: {mode}, max_in_flight: 4}}}}
    tool: {{kind: noop}}
{more}"""


def whole(script: Script, value: Any) -> Any:
    return combined(value, [script.stored[part["ref"]] for part in value["parts"]])


def test_a_short_list_and_small_results_travel_inline() -> None:
    script = Script(loop("{{ range(10) }}"), {"each": lambda _item, index: {"n": index}}).run()
    assert script.of("loop.started")[0].payload["items"] == list(range(10))
    assert script.result["results"] == [{"n": index} for index in range(10)]
    assert script.of("result.manifest.updated") == []
    script.check()


def test_a_long_list_is_stored_once_and_handed_out_by_reference_and_range() -> None:
    script = Script(loop("{{ range(100000) | list }}"), {})
    script.start()
    items = script.of("loop.started")[0].payload["items"]
    assert (items["kind"], items["total"], items["strategy"]) == ("manifest_ref", 100_000, "concat")
    assert whole(script, items) == list(range(100_000))
    work = next(iter(script.work.values()))
    assert work.chunk is not None
    assert (work.chunk.items, work.chunk.size) == ((), 1)
    assert work.chunk.source is not None
    assert [part["ref"] for part in work.chunk.source["parts"]] == [items["parts"][0]["ref"]]
    assert len(dump(script.state)) < 5_000


def test_many_items_without_a_result_are_put_away_as_well() -> None:
    script = Script(loop("{{ range(14000) }}"), {}).run()
    assert whole(script, script.result["results"]) == [None] * 14_000
    assert all(len(str(event.payload)) < 5_000 for event in script.events if event.event_type != "loop.iteration.done")
    script.check()


@pytest.mark.parametrize(
    ("given", "counted"),
    [
        ("{{ range(1000000) }}", range(1_000_000)),
        ("{{- range( workload.n * 2 ,5000,3 ) -}}", range(20, 5_000, 3)),
        ("{{ range(0, -3000, -2) }}", range(0, -3_000, -2)),
    ],
)
def test_many_numbers_are_counted_and_neither_written_nor_stored(given: str, counted: range) -> None:
    script = Script(loop(given), {}, payload={"n": 10})
    script.start()
    started = script.of("loop.started")[0].payload
    bounds = [counted.start, counted.stop, counted.step]
    assert (started["items"], started["total"]) == ({"range": bounds, "total": len(counted)}, len(counted))
    assert script.stored == {}
    assert len(dump(script.state)) < 5_000
    script.answer(next(iter(script.work.values())))
    handed = [work.chunk for work in script.work.values() if work.chunk is not None]
    assert handed
    for chunk in handed:
        assert (chunk.items, chunk.source) == (tuple(counted[chunk.start : chunk.start + chunk.size]), None)
        assert chunk.size
    script.check()


def test_numbers_are_counted_to_the_end_and_every_item_sees_its_own() -> None:
    script = Script(
        loop("{{ range(10, 2510) }}"), {"each": lambda work, index: work.chunk.items[index - work.chunk.start]}
    )
    script.run()
    script.check()
    assert script.result["results"] == list(range(10, 2_510))


@pytest.mark.parametrize(
    "given",
    ["{{ range(1000) }}", "{{ range(10) + range(1001) }}", "{{ range(1001) | list }}", "{{ range(1001)[:5] }}"],
)
def test_few_numbers_and_what_is_more_than_counting_are_a_list(given: str) -> None:
    script = Script(loop(given), {})
    script.start()
    assert isinstance(script.of("loop.started")[0].payload["items"], list)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{{ range(10 ** 12) }}", "operations"),
        ("{{ range(0, 5000, 0) }}", "`step` must not be zero"),
        ("{{ range('5000') }}", "must be an integer"),
        ("{{ range(nowhere) }}", "nowhere"),
    ],
)
def test_numbers_that_cannot_be_counted_are_an_error(given: str, told: str) -> None:
    script = Script(loop(given), {})
    script.start()
    assert script.status == "failed"
    assert told in script.of("playbook.finished")[0].payload["error"]["message"]


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_many_results_are_put_away_in_parts_in_their_order(mode: str) -> None:
    script = Script(loop("{{ range(3000) }}", mode=mode), {"each": lambda _item, index: {"n": index, "x": "x" * 500}})
    script.run()
    script.check()
    assert script.status == "completed"
    updates = script.of("result.manifest.updated")
    assert len(updates) > 2
    assert updates[0].payload["start"] == 0
    results = script.result["results"]
    assert (results["kind"], results["total"], results["strategy"]) == ("manifest_ref", 3000, "concat")
    assert [result["n"] for result in whole(script, results)] == list(range(3000))
    assert script.result["stats"]["succeeded"] == 3000


def test_the_state_of_a_running_loop_does_not_grow_with_what_is_done() -> None:
    script = Script(loop("{{ range(6000) }}"), {"each": lambda _item, index: {"n": index, "x": "x" * 500}})
    script.start()
    largest = 0
    while script.work:
        script.answer(next(iter(script.work.values())))
        largest = max(largest, sum(run.loop.bytes for run in script.state.runs.values() if run.loop is not None))
    assert script.status == "completed"
    assert largest < 2 * loop_results.SPILL_BYTES


def test_the_threshold_is_that_of_the_step() -> None:
    text = loop("{{ range(3) }}", "    spec: {result: {inline_max_bytes: 10}}\n")
    script = Script(text, {"each": lambda _item, index: {"number": index}}).run()
    assert script.of("loop.started")[0].payload["items"] == [0, 1, 2]
    assert script.result["results"]["kind"] == "manifest_ref"
    script.check()


def test_a_failed_item_keeps_its_place_in_the_parts() -> None:
    from noetl.model.outcome import failed

    policy = "    spec: {policy: {failure: {mode: best_effort}}, result: {inline_max_bytes: 10}}\n"
    outcomes = [{"number": 0}, failed("schema", "no"), {"number": 2}]
    script = Script(loop("{{ range(3) }}", policy), {"each": outcomes}).run()
    assert whole(script, script.result["results"]) == [{"number": 0}, None, {"number": 2}]


def test_a_loop_over_the_results_of_a_loop_reads_the_same_parts() -> None:
    more = """    spec: {result: {inline_max_bytes: 10}}
    next: again
  - step: again
    loop: {in: "{{ each.results }}", iterator: n}
    tool: {kind: noop}
"""
    script = Script(loop("{{ range(5) }}", more), {"each": lambda _item, index: {"number": index}}).run()
    script.check()
    first = script.of("step.done")[0].payload["result"]["results"]
    assert script.of("loop.started")[1].payload["items"] == first
    assert script.of("loop.started")[1].payload["total"] == 5


def test_the_server_reads_gathered_results_where_a_template_does() -> None:
    more = """    spec: {result: {inline_max_bytes: 10}}
    set: {ctx.sum: "{{ outcome.results | map(attribute='number') | sum }}", ctx.total: "{{ each.stats.total }}"}
"""
    script = Script(loop("{{ range(5) }}", more), {"each": lambda _item, index: {"number": index}})
    script.run()
    assert script.state.ctx == {"sum": 10, "total": 5}


def test_without_a_place_for_them_results_stay_where_they_are() -> None:
    text = loop("{{ range(3) }}", "    spec: {result: {inline_max_bytes: 1}}\n")
    script = Script(text, {"each": lambda _item, index: {"number": index}})
    script._put = lambda _ref, _listed: None  # type: ignore[method-assign,assignment,return-value]
    script.run()
    assert script.result["results"] == [{"number": number} for number in range(3)]


def test_a_fork_between_the_last_item_and_the_end_goes_on() -> None:
    text = loop("{{ range(3) }}", "    spec: {result: {inline_max_bytes: 10}}\n")
    script = Script(text, {"each": lambda _item, index: {"number": index}}).run()
    upto = script.of("result.manifest.updated")[0].seq - 1
    copied = shared(script.events, upto, "77")
    made = fork(script.plan, copied, "77")
    assert made.work == ()
    ((execution_id, message),) = made.inbox
    again = Script(text, {}, execution_id="77")
    again.state, again.events = fold("77", copied), list(copied)
    again.tell(message)
    assert execution_id == "77"
    assert again.status == "completed"
    assert checksum(fold("77", again.events)) == checksum(again.state)
