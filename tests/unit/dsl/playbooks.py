"""Random playbooks: each drawn once and written in either native spelling.

`written(meaning, "v10")` and `written(meaning, "io")` are two texts of one playbook.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from hypothesis import strategies as st

Spelling = Literal["v10", "io"]
Data = dict[str, Any]
NAMES = ("alpha", "beta", "gamma", "delta", "omega")
LABELS = ("fetch", "shape", "store")
KINDS = ("noop", "http", "python", "shell")

scalars = st.one_of(
    st.integers(-9, 9), st.booleans(), st.none(), st.sampled_from(["a", "b c", "{{ ctx.total }}", "yes", ""])
)
maps = st.dictionaries(st.sampled_from(["x", "y", "z"]), scalars, max_size=2)
conditions = st.sampled_from(
    [
        "{{ <envelope>.status == 'error' }}",
        "{{ <result>.code in [1, 2] and ctx.ready }}",
        "{{ <envelope>.error.kind == 'timeout' or <result> is none }}",
        True,
    ]
)


@st.composite
def assigned(draw: st.DrawFn, scopes: tuple[str, ...]) -> list[tuple[str, str, Any]]:
    keys = draw(st.lists(st.tuples(st.sampled_from(scopes), st.sampled_from(["p", "q"])), unique=True, max_size=2))
    return [(scope, key, draw(st.sampled_from([1, "x", "{{ <result>.n }}"]))) for scope, key in keys]


@st.composite
def rules(draw: st.DrawFn) -> list[Data]:
    found: list[Data] = []
    for _ in range(draw(st.integers(0, 2))):
        do = draw(st.sampled_from(["continue", "fail", "retry", "break", "skip"]))
        extra = {"attempts": 3, "delay": 0.5, "backoff": "linear"} if do == "retry" else {}
        found.append({"when": draw(conditions), "do": {"do": do, **extra}, "sets": draw(assigned(("ctx", "iter")))})
    found.append(
        {"when": None, "do": {"do": "continue"}, "sets": draw(assigned(("ctx",))), "else": draw(st.integers(0, 2))}
    )
    return found


@st.composite
def tasks(draw: st.DrawFn) -> list[Data]:
    labels = draw(st.lists(st.sampled_from(LABELS), unique=True, max_size=3))
    return [
        {
            "label": label,
            "kind": draw(st.sampled_from(KINDS)),
            "input": draw(maps),
            "fields": draw(st.fixed_dictionaries({}, optional={"url": st.just("u"), "code": st.just("result = 1")})),
            "rules": draw(st.none() | rules()),
            "timeout": draw(st.none() | st.integers(1, 9)),
        }
        for label in labels
    ]


@st.composite
def arcs(draw: st.DrawFn, names: list[str]) -> list[Data]:
    return [
        {
            "step": draw(st.sampled_from(names)),
            "when": draw(st.none() | conditions),
            "args": draw(maps),
            "sets": draw(assigned(("ctx",))),
        }
        for _ in range(draw(st.integers(0, 3)))
    ]


@st.composite
def playbooks(draw: st.DrawFn) -> Data:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=4))
    steps = [
        {
            "step": name,
            "tasks": draw(tasks()),
            "arcs": draw(arcs(names)),
            "mode": draw(st.sampled_from(["exclusive", "inclusive"])),
            "sets": draw(assigned(("ctx",))),
            "input": draw(maps),
            "loop": draw(st.none() | st.sampled_from(["sequential", "parallel"])),
        }
        for name in names
    ]
    return {"steps": steps, "workload": draw(maps), "profile": draw(st.sampled_from(["local", "auto"]))}


def _speak(value: Any, spelling: Spelling) -> Any:
    if not isinstance(value, str):
        return value
    if spelling == "io":
        return value.replace("<envelope>", "output").replace("<result>", "output.data").replace("ctx.", "vars.")
    return value.replace("<envelope>", "outcome").replace("<result>", "outcome.result")


def _sets(sets: list[tuple[str, str, Any]], spelling: Spelling, only_ctx: bool = False) -> Data:
    spoken = [(scope, key, _speak(value, spelling)) for scope, key, value in sets]
    if spelling == "io" or only_ctx:
        return {"set": {f"{scope}.{key}": value for scope, key, value in spoken}} if spoken else {}
    found: Data = {}
    for scope, key, value in spoken:
        found.setdefault(f"set_{scope}", {})[key] = value
    return found


def _rule(rule: Data, spelling: Spelling) -> Data:
    then = {**rule["do"], **_sets(rule["sets"], spelling)}
    if rule["when"] is not None:
        return {"when": _speak(rule["when"], spelling), "then": then}
    shape = rule["else"] if spelling == "io" else 0
    return ({"else": {"then": then}}, {"else": then}, {"else": None, "then": then})[shape]


def _task(task: Data, spelling: Spelling) -> Data:
    body: Data = {"kind": task["kind"], **task["fields"]}
    if task["input"]:
        body["input" if spelling == "io" else "args"] = task["input"]
    if task["rules"] is not None:
        body["spec"] = {"policy": {"rules": [_rule(rule, spelling) for rule in task["rules"]]}}
    if task["timeout"] is not None:
        body |= {"timeout": task["timeout"]} if spelling == "io" else {"timeout_ms": task["timeout"] * 1000}
    return {"name": task["label"], **body} if spelling == "io" else {task["label"]: body}


def _step(step: Data, spelling: Spelling) -> Data:
    found: Data = {"step": step["step"]}
    if step["loop"]:
        spec = {"mode": step["loop"]}
        found["loop"] = {"in": "{{ workload.x }}", "iterator": "each", **(spec if spelling == "io" else {"spec": spec})}
    if step["input"]:
        found["input" if spelling == "io" else "args"] = step["input"]
    if step["tasks"]:
        found["tool"] = [_task(task, spelling) for task in step["tasks"]]
    found |= _sets(step["sets"], spelling)
    found["next"] = {
        "spec": {"mode": step["mode"]},
        "arcs": [
            {"step": arc["step"]}
            | ({} if arc["when"] is None else {"when": _speak(arc["when"], spelling)})
            | ({"input" if spelling == "io" else "args": arc["args"]} if arc["args"] else {})
            | _sets(arc["sets"], spelling)
            for arc in step["arcs"]
        ],
    }
    return found


def written(meaning: Data, spelling: Spelling) -> str:
    """Write a drawn playbook in one of the two native spellings, as JSON."""
    root = {
        "apiVersion": "noetl.io/v2" if spelling == "io" else "noetl.io/v10",
        "kind": "Playbook",
        "metadata": {"name": "drawn", "path": "tests/drawn"},
        "executor": {"kind" if spelling == "io" else "profile": meaning["profile"]},
        "workload": meaning["workload"],
        "workflow": [_step(step, spelling) for step in meaning["steps"]],
    }
    return json.dumps(root, indent=1)
