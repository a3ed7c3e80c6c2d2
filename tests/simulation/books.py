"""Random playbooks that always end or wait: splits, joins, gates, loops, children.

Most of them can complete: failures are mostly retried, routed or rescued, and gates can open.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

CHILD = "simulation/child"
_MOST_ROUNDS = 3
_FAILED = "{{ event.name == 'step.failed' }}"
_GATES = ("{{ ctx.open }}", "{{ ctx.any }}", "{{ done('s1') }}", "{{ ctx.signals.go is defined }}")


def random_playbook(chance: Random) -> str:
    count = chance.randint(3, 9)
    names = [f"s{number}" for number in range(count)]
    steps = [_step(chance, names, number) for number in range(count)]
    spec: dict[str, Any] = {
        "on_parked": chance.choice(["wait", "wait", "finish", "finish", "finish", "fail"]),
        "on_step_fail": chance.choice(["halt", "continue", "route_edge:rescue", "route_edge:rescue"]),
    }
    root: dict[str, Any] = {"apiVersion": "noetl.io/v10", "kind": "Playbook"}
    root["metadata"] = {"name": "simulated", "path": "simulation/parent"}
    steps.append({"step": "rescue", "spec": {"join": "each"}, "tool": {"kind": "noop"}})
    if chance.random() < 0.3:
        steps.append({"step": "last", "tool": {"kind": "noop"}})
        spec["final_step"] = "last"
    if chance.random() < 0.2:
        spec["max_parallel"] = chance.randint(1, 3)
    if chance.random() < 0.05:
        spec["timeout_s"] = chance.randint(5, 60)
    if chance.random() < 0.4:
        root["policy"] = {"rollback": "on_fail"}
        steps.append({"step": "undo", "tool": {"kind": "noop"}})
        for step in chance.sample(steps[:count], 2):
            step["compensate"] = "undo"
    root["executor"] = {"spec": spec}
    root["workflow"] = steps
    return json.dumps(root, indent=1)  # which is YAML too


def child_playbook() -> str:
    """Return the text of the playbook that steps start as a child."""
    root = {
        "apiVersion": "noetl.io/v10",
        "kind": "Playbook",
        "metadata": {"name": "child", "path": CHILD},
        "workflow": [
            {"step": "one", "tool": {"kind": "noop"}, "next": ["two", "three"]},
            {"step": "two", "tool": {"kind": "noop"}, "next": "four"},
            {"step": "three", "loop": {"in": [1, 2], "iterator": "n"}, "tool": {"kind": "noop"}, "next": "four"},
            {"step": "four", "tool": {"kind": "noop"}},
        ],
    }
    return json.dumps(root, indent=1)  # which is YAML too


def _step(chance: Random, names: list[str], number: int) -> dict[str, Any]:
    name = names[number]
    step: dict[str, Any] = {"step": name, "spec": _spec(chance)}
    _give_work(chance, step)
    step["set"] = {f"ctx.{name}": f"{{{{ (ctx.{name} | default(0)) + 1 }}}}", "ctx.any": True}
    later = names[number + 1 :]
    arcs = _arcs(chance, name, names[:number], later)
    step["next"] = {"spec": {"mode": chance.choice(["exclusive", "inclusive", "inclusive"])}, "arcs": arcs}
    return step


def _spec(chance: Random) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if chance.random() < 0.4:
        spec["join"] = chance.choice(["all", "any", "any", "each", "each", 2])
    if chance.random() < 0.2:
        spec["policy"] = {"admit": {"rules": [{"when": chance.choice(_GATES), "then": {"allow": True}}]}}
    if chance.random() < 0.08:
        spec["timeout_s"] = chance.randint(3, 30)
    return spec


def _task(chance: Random, name: str, before: str | None) -> dict[str, Any]:
    """Return a task that may have a policy: retries, skips, breaks, jumps."""
    task: dict[str, Any] = {"name": name, "kind": "noop"}
    draw = chance.random()
    error = "{{ outcome.status == 'error' }}"
    rules: list[dict[str, Any]] = []
    if draw < 0.3:
        delay = chance.choice([0, 0.5, 6])
        then = {"do": "retry", "attempts": 4, "delay": delay, "backoff": chance.choice(["fixed", "exponential"])}
        rules = [{"when": error, "then": then}]
    elif draw < 0.36:
        rules = [{"when": error, "then": {"do": chance.choice(["skip", "break", "continue", "fail"])}}]
    elif draw < 0.42 and before is not None:
        again = f"{{{{ (iter.back or 0) < 2 and outcome.result.n is even and _attempt == 1 and {before}.n is odd }}}}"
        rules = [{"when": again, "then": {"do": "jump", "to": before}}]
    if rules:
        task["spec"] = {"policy": {"rules": [*rules, {"else": {"then": {"do": "continue"}}}], "on_unmatched": "fail"}}
    return task


def _tasks(chance: Random, most: int) -> list[dict[str, Any]]:
    labels = ("one", "two", "three")[: chance.randint(1, most)]
    return [_task(chance, label, labels[at - 1] if at else None) for at, label in enumerate(labels)]


def _give_work(chance: Random, step: dict[str, Any]) -> None:
    draw = chance.random()
    if draw < 0.15:
        step["tool"] = {"kind": "noop"}
    elif draw < 0.4:
        step["tool"] = _tasks(chance, 3)
    elif draw < 0.7:
        _give_loop(chance, step)
    elif draw < 0.8:
        step["tool"] = {"kind": "sleep", "seconds": chance.randint(1, 15)}
    elif draw < 0.87:
        step["tool"] = {"kind": "wait", "signal": "go", **({"timeout_s": 8} if chance.random() < 0.3 else {})}
    elif draw < 0.94:
        step["tool"] = {"kind": "playbook", "path": CHILD}


def _give_loop(chance: Random, step: dict[str, Any]) -> None:
    spec: dict[str, Any] = {"mode": chance.choice(["sequential", "parallel", "parallel"])}
    spec["max_in_flight"] = chance.randint(1, 4)
    if chance.random() < 0.6:
        spec["policy"] = {
            "exec": chance.choice(["local", "distributed"]),
            "failure": {"mode": chance.choice(["fail_fast", "best_effort", "best_effort"])},
        }
    step["loop"] = {"in": list(range(chance.randint(0, 12))), "iterator": "n", "spec": spec}
    tasks = _tasks(chance, 2)
    if chance.random() < 0.5:
        tasks[0]["set"] = {f"ctx.sum_{step['step']}": "{{ n }}"}
        spec["reduce"] = {f"ctx.sum_{step['step']}": chance.choice(["sum", "append", "count", "last"])}
    draw = chance.random()
    if draw < 0.15:
        tasks.append({"name": "rest", "kind": "sleep", "seconds": chance.randint(1, 12)})
    elif draw < 0.22:
        tasks.append({"name": "hear", "kind": "wait", "signal": "go"})
    elif draw < 0.27:
        tasks.append({"name": "call", "kind": "playbook", "path": CHILD})
    step["tool"] = tasks


def _arcs(chance: Random, name: str, earlier: list[str], later: list[str]) -> list[dict[str, Any]]:
    arcs: list[dict[str, Any]] = []
    if earlier and chance.random() < 0.2:  # a way back, taken a few times at most
        arcs.append({"step": chance.choice(earlier), "when": f"{{{{ ctx.{name} < {_MOST_ROUNDS} }}}}"})
    for target in chance.sample(later, min(len(later), chance.randint(1, 3))):
        arc: dict[str, Any] = {"step": target, "args": {"from": name}}
        draw = chance.random()
        if draw < 0.15:
            arc["when"] = _FAILED
        elif draw < 0.3:
            arc["when"] = f"{{{{ ctx.{name} % 2 == 1 }}}}"
        arcs.append(arc)
    arcs.append({"step": "rescue", "label": "rescue", "when": _FAILED if chance.random() < 0.7 else "{{ false }}"})
    return arcs
