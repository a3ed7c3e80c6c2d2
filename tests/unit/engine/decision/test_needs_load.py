"""Decisions that need a stored result, and are made again with it."""

from __future__ import annotations

from typing import Any

from noetl.engine.decision.needs_load import NeedsLoad, seen
from noetl.engine.handlers.decide import decide
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import checksum
from noetl.model.errors import BadReference
from noetl.testing.play import Script, play

REF = "noetl://execution/1/step/make/task/make_task/run/1/attempt/1"
HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: t, path: t/t}\nworkload: {key: b}\n"
MAKE = """
  - step: make
    tool: {kind: noop}
    next:
      spec: {mode: exclusive}
      arcs:
        - {step: yes_it_is, when: "WHEN"}
        - {step: no_it_is_not}
  - {step: yes_it_is, tool: {kind: noop}}
  - {step: no_it_is_not, tool: {kind: noop}}
"""


def book(when: str) -> str:
    return f"{HEAD}workflow:{MAKE.replace('WHEN', when)}"


def ref(**extracted: Any) -> dict[str, Any]:
    return {
        "kind": "result_ref",
        "ref": REF,
        "store": "db",
        "meta": {"bytes": 70_000},
        "keys": ["a", "b"],
        "extracted": extracted,
    }


def scripted(when: str, **extracted: Any) -> Script:
    script = Script(book(when), {"make": ref(**extracted)})
    script.stored[REF] = {"a": 1, "b": 2}
    return script


def test_a_dynamic_lookup_is_decided_with_what_was_loaded() -> None:
    script = scripted("{{ make[workload.key] == 2 }}").run()
    script.check()
    assert script.runs() == ["make#1", "yes_it_is#1"]


def test_the_same_through_every_name_of_the_result() -> None:
    names = ["outcome.result[w]", "output.data[w]", "event.payload.result[w]", "make.data[w]", "make.b"]
    for name in names:
        script = scripted("{{ " + name.replace("[w]", "[workload.key]") + " == 2 }}").run()
        assert script.runs()[-1] == "yes_it_is#1", name


def test_what_lies_beside_is_not_asked_for() -> None:
    script = scripted("{{ make.a == 7 and make.nothing is undefined and make._ref }}", a=7)
    del script.stored[REF]  # to load it would be an error
    assert script.run().runs()[-1] == "yes_it_is#1"


def test_needs_tells_whether_the_state_was_touched() -> None:
    script = scripted("{{ make | length == 2 }}")
    script.start()
    (item,) = script.work.values()
    from noetl.model.messages import Ending, Report

    before = checksum(script.state)
    report = Report("m9", item.run_id, 1, "w", ending=Ending("ok", ref()))
    needs = decide(script.plan, script.state, report, script.now)
    assert isinstance(needs, NeedsLoad)
    assert [one["ref"] for one in needs.loads] == [REF]
    assert needs.touched
    assert checksum(fold(script.state.execution_id, script.events)) == before


def test_what_cannot_be_loaded_is_an_error_of_the_condition() -> None:
    script = scripted("{{ make[workload.key] == 2 }}")
    script.stored[REF] = BadReference("it has 300,000,000 bytes, which is too much")
    script.run()
    (routed,) = [event for event in script.of("next.evaluated") if event.entity_id == "make"]
    assert "too much" in routed.payload["arcs"][0]["error"]
    assert script.runs()[-1] == "no_it_is_not#1"


def test_a_set_that_cannot_be_loaded_fails_the_step_with_a_reference_error() -> None:
    text = f'{HEAD}workflow:\n  - step: make\n    tool: {{kind: noop}}\n    set: {{ctx.x: "{{{{ make.b }}}}"}}\n'
    script = Script(text, {"make": ref()})
    script.stored[REF] = BadReference("it has expired")
    script.run()
    assert script.status == "failed"
    assert script.state.error is not None
    assert script.state.error["kind"] == "reference"
    assert "expired" in script.state.error["message"]


def test_the_input_of_a_step_is_rendered_only_where_its_router_reads_it() -> None:
    text = f"""{HEAD}workflow:
  - step: make
    tool: {{kind: noop}}
    next: use
  - step: use
    input: {{all: "{{{{ make.b }}}}"}}
    tool: {{kind: noop}}
    next: [{{step: last, when: "{{{{ true }}}}"}}]
  - {{step: last, tool: {{kind: noop}}}}
"""
    script = Script(text, {"make": ref()})
    assert script.run().runs()[-1] == "last#1"  # nothing is in the store: to load it would be an error


def test_items_of_a_loop_that_were_put_away_are_loaded_together() -> None:
    text = f"""{HEAD}workflow:
  - step: each
    loop: {{in: [1, 2], iterator: n}}
    tool: {{kind: noop}}
    set: {{ctx.sum: "{{{{ outcome.results | map(attribute='a') | sum }}}}"}}
"""
    refs = [{**ref(), "ref": f"{REF}/{number}"} for number in range(2)]
    script = Script(text, {"each": refs})
    script.stored |= {one["ref"]: {"a": 5} for one in refs}
    assert script.run().state.ctx == {"sum": 10}


def test_small_results_are_seen_as_they_are() -> None:
    for value in ({"a": 1}, [1, 2], None, "text", {"results": [1]}, {"results": {"x": 1}}):
        assert seen(value) == value
    assert play(book("{{ make.a == 1 }}"), {"make": {"a": 1}}).runs()[-1] == "yes_it_is#1"
