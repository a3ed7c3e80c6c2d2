"""Failure policies of configuration, executor and step: the nearest wins.

Where the condition of an arc, a gate or a rule cannot be evaluated, the log says so, and so does `explain`.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from noetl.engine.plan.plan import plan
from noetl.engine.queries.explain import choices, standings
from noetl.testing.scenario import Played, Scenario, read_playbook
from tests.scenarios.test_scenarios import held, played

LAYERS = ("configuration", "executor", "step")
BROKEN = "{{ 1 // ctx.zero | default(0) > 1 }}"


def play(policy: str, layers: tuple[str | None, ...], step: dict[str, Any], folder: Path, **outcomes: Any) -> Played:
    """Play a playbook with this first step and a policy set in some of the layers."""
    configuration, executor, own = layers
    spec = {**step.get("spec", {}), **({} if own is None else {policy: own})}
    book = {
        "apiVersion": "noetl.io/v10",
        "kind": "Playbook",
        "metadata": {"name": "policies", "path": "scenarios/policies"},
        "executor": {"spec": {"retries": {"plugin": {"max_attempts": 1}}, **({policy: executor} if executor else {})}},
        "workflow": [
            {"step": "first", **step, "spec": spec},
            {"step": "good", "tool": {"kind": "noop", "result": "good"}},
            {"step": "bad", "tool": {"kind": "noop", "result": "bad"}},
        ],
    }
    defaults = {"pool_capacity": 4, **({} if configuration is None else {policy: configuration})}
    script = {"rule": "", "defaults": defaults, "outcomes": outcomes}
    found = played(Scenario("policies", "", {"playbook.yaml": yaml.safe_dump(book)}, script, {}), "memory", folder)
    held(found)
    return found


def layered(words: tuple[str, ...]) -> list[tuple[tuple[str | None, ...], str | None]]:
    """Return every setting of three layers, and the value that counts."""
    ways = itertools.product((None, *words), repeat=3)
    return [(way, next((word for word in reversed(way) if word is not None), None)) for way in ways]


def ran(found: Played) -> list[str]:
    return [event.entity_id for event in found.events if event.event_type == "step.done"]


def status(found: Played) -> str:
    assert found.live is not None
    return found.live.status


FAILS = {"error": {"kind": "client_error", "message": "no", "retryable": False}}


@pytest.mark.parametrize(("layers", "counts"), layered(("halt", "continue", "route_edge:sorry"))[::3])
def test_a_failure_that_no_arc_takes(layers: tuple[str | None, ...], counts: str | None, tmp_path: Path) -> None:
    arcs = [{"step": "good"}, {"step": "bad", "label": "sorry", "when": "{{ false }}"}]
    found = play("on_step_fail", layers, {"tool": {"kind": "http", "url": "x"}, "next": arcs}, tmp_path, first=FAILS)
    expected = {"continue": (["good"], "failed"), "route_edge:sorry": (["bad"], "completed")}
    assert (ran(found), status(found)) == expected.get(counts or "halt", ([], "failed"))


@pytest.mark.parametrize(("layers", "counts"), layered(("retry", "max_attempts→fail_step", "async_ignore"))[::3])
def test_a_task_that_stores_and_fails(layers: tuple[str | None, ...], counts: str | None, tmp_path: Path) -> None:
    tool = {"kind": "postgres", "auth": "db", "table": "t", "mode": "insert", "values": {"n": 1}}
    found = play("on_sink_fail", layers, {"tool": tool, "next": "good"}, tmp_path, first=FAILS)
    expected = (["first", "good"], "completed") if counts == "async_ignore" else ([], "failed")
    assert (ran(found), status(found)) == expected
    assert [event.payload["error"]["kind"] for event in found.events if event.event_type == "task.failed"] == [
        "client_error"
    ]


WHERE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "arc": ({"tool": {"kind": "noop"}, "next": [{"step": "bad", "when": BROKEN}, {"step": "good"}]}, ["first", "good"]),
    "gate": (
        {
            "tool": {"kind": "noop"},
            "next": "good",
            "spec": {"policy": {"admit": {"rules": [{"when": BROKEN, "then": {"allow": True}}]}}},
        },
        [],
    ),
    "rule": (
        {
            "tool": {
                "kind": "noop",
                "spec": {"policy": {"rules": [{"when": BROKEN, "then": {"do": "fail"}}, {"else": {"then": {"do": "continue"}}}]}},
            },
            "next": "good",
        },
        ["first", "good"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("layers", "counts"), layered(("treat_as_false", "fail_step")))
def test_a_condition_that_cannot_be_evaluated(
    where: str, layers: tuple[str | None, ...], counts: str | None, tmp_path: Path
) -> None:
    step, goes_on = WHERE[where]
    found = play("on_when_error", layers, step, tmp_path)
    if counts == "fail_step":
        assert (ran(found)[1:], status(found)) == ([], "failed")
        assert found.live is not None
        assert "cannot be evaluated" in str(found.live.failures) or "zero" in str(found.live.failures)
    else:
        assert ran(found) == goes_on
        assert status(found) == ("waiting" if where == "gate" else "completed")
    said = [reason for choice in choices(found.events) for reason in choice.because]
    assert any("zero" in reason for reason in said), said
    if status(found) == "waiting":
        assert found.live is not None
        playbook = read_playbook(yaml.safe_dump({**_HEAD, "workflow": [{"step": "first", **step}, *_REST]}))
        [one] = standings(plan(playbook, ""), found.live, found.events)
        assert "a condition of it cannot be evaluated" in one.waits_for


_HEAD = {
    "apiVersion": "noetl.io/v10",
    "kind": "Playbook",
    "metadata": {"name": "policies", "path": "scenarios/policies"},
}
_REST = [{"step": name, "tool": {"kind": "noop"}} for name in ("good", "bad")]
