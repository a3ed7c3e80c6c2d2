"""Makes random playbooks that always come to an end or to a wait: forks, joins, gates, rounds, loops, waits, children."""

from __future__ import annotations

import json
from random import Random
from typing import Any

CHILD = "simulation/child"
_MOST_ROUNDS = 3


def random_playbook(chance: Random) -> str:
    """Give the text of a playbook."""
    count = chance.randint(3, 8)
    names = [f"s{number}" for number in range(count)]
    steps = [_step(chance, names, number) for number in range(count)]
    spec: dict[str, Any] = {
        "on_parked": chance.choice(["wait", "finish", "fail"]),
        "on_step_fail": chance.choice(["halt", "continue"]),
    }
    root: dict[str, Any] = {"apiVersion": "noetl.io/v10", "kind": "Playbook"}
    root["metadata"] = {"name": "simulated", "path": "simulation/parent"}
    if chance.random() < 0.3:
        steps.append({"step": "last", "tool": {"kind": "noop"}})
        spec["final_step"] = "last"
    if chance.random() < 0.2:
        spec["max_parallel"] = chance.randint(1, 3)
    if chance.random() < 0.1:
        spec["timeout_s"] = chance.randint(5, 40)
    if chance.random() < 0.3:
        root["policy"] = {"rollback": "on_fail"}
        steps.append({"step": "undo", "tool": {"kind": "noop"}})
        for step in chance.sample(steps[:count], 2):
            step["compensate"] = "undo"
    root["executor"] = {"spec": spec}
    root["workflow"] = steps
    return json.dumps(root, indent=1)  # which is YAML too


def child_playbook() -> str:
    """Give the text of the playbook that steps start as a child."""
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
    if arcs or "tool" not in step:
        step["next"] = {"spec": {"mode": chance.choice(["exclusive", "inclusive", "inclusive"])}, "arcs": arcs}
        if not arcs:
            step["tool"] = {"kind": "noop"}
            del step["next"]
    return step


def _spec(chance: Random) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if chance.random() < 0.4:
        spec["join"] = chance.choice(["all", "any", 2, "each"])
    if chance.random() < 0.2:
        gate = chance.choice(["{{ ctx.open }}", "{{ ctx.any }}", "{{ done('s1') }}", "{{ ctx.signals.go is defined }}"])
        spec["policy"] = {"admit": {"rules": [{"when": gate, "then": {"allow": True}}]}}
    if chance.random() < 0.1:
        spec["timeout_s"] = chance.randint(2, 20)
    return spec


def _give_work(chance: Random, step: dict[str, Any]) -> None:
    draw = chance.random()
    if draw < 0.3:
        step["tool"] = {"kind": "noop"}
    elif draw < 0.5:
        step["tool"] = [{"name": label, "kind": "noop"} for label in ("one", "two", "three")[: chance.randint(1, 3)]]
    elif draw < 0.75:
        mode: dict[str, Any] = {"mode": chance.choice(["sequential", "parallel", "parallel"])}
        if chance.random() < 0.5:
            mode["policy"] = {
                "exec": chance.choice(["local", "distributed"]),
                "failure": {"mode": chance.choice(["fail_fast", "best_effort"])},
            }
        items = list(range(chance.randint(0, 12)))
        step["loop"] = {"in": items, "iterator": "n", "spec": {**mode, "max_in_flight": chance.randint(1, 4)}}
        waits = {"name": "rest", "kind": "sleep", "seconds": chance.randint(1, 12)}
        step["tool"] = [{"name": "one", "kind": "noop"}, *([waits] if chance.random() < 0.2 else [])]
    elif draw < 0.83:
        step["tool"] = {"kind": "sleep", "seconds": chance.randint(1, 15)}
    elif draw < 0.9:
        step["tool"] = {"kind": "wait", "signal": "go", **({"timeout_s": 8} if chance.random() < 0.7 else {})}
    elif draw < 0.95:
        step["tool"] = {"kind": "playbook", "path": CHILD}


def _arcs(chance: Random, name: str, earlier: list[str], later: list[str]) -> list[dict[str, Any]]:
    arcs: list[dict[str, Any]] = []
    if earlier and chance.random() < 0.2:  # a way back, taken a few times at most
        arcs.append({"step": chance.choice(earlier), "when": f"{{{{ ctx.{name} < {_MOST_ROUNDS} }}}}"})
    for target in chance.sample(later, min(len(later), chance.randint(1, 3))):
        arc: dict[str, Any] = {"step": target, "args": {"from": name}}
        draw = chance.random()
        if draw < 0.2:
            arc["when"] = "{{ event.name == 'step.failed' }}"
        elif draw < 0.4:
            arc["when"] = f"{{{{ ctx.{name} % 2 == 1 }}}}"
        arcs.append(arc)
    return arcs
