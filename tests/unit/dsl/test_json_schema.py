"""The JSON Schema agrees with the shape checks on the corpus and its mutants."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from noetl.dsl.checking.shape import ShapeFinding, findings
from noetl.dsl.grammar import LEVELS
from noetl.dsl.json_schema import schema
from noetl.dsl.reading.nodes import plain
from noetl.dsl.reading.parse import parse
from noetl.wiring.embedded import language_kinds
from tests.corpus.corpus import files, name

KINDS = language_kinds()
SCHEMA = schema(KINDS)
VALIDATOR = Draft202012Validator(SCHEMA)
EXAMPLES = sorted(path for path in (Path(__file__).parents[3] / "examples").glob("*.yaml") if ".test." not in path.name)
GOOD = [*files("good"), *EXAMPLES]


def data_of(path: Path) -> Any:
    return plain(parse(path.read_bytes(), path.name).root)


def problems(data: Any) -> list[str]:
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in VALIDATOR.iter_errors(data)]


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name)
def test_good_playbooks_are_valid(path: Path) -> None:
    assert problems(data_of(path)) == []


def beyond_a_schema(finding: ShapeFinding) -> bool:
    """Return whether only the checker finds it: doubles, marks, what arcs may give."""
    needs = () if finding.tool is None else finding.tool.needs
    return (
        finding.kind == "not-templated"
        or (finding.kind == "twice" and finding.tool is None)
        or (finding.kind == "missing" and any(need.instead and finding.name in need.fields for need in needs))
    )


def tasks(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        if "kind" in data:
            yield data
        for value in data.values():
            yield from tasks(value)
    elif isinstance(data, list):
        for item in data:
            yield from tasks(item)


def agrees(data: Any) -> bool:
    """Return whether the schema and the shape checks agree on a document."""
    found = findings(parse(json.dumps(data)).root, KINDS)
    valid = VALIDATOR.is_valid(data)
    if valid:
        return all(map(beyond_a_schema, found))
    unknown_kind = any(not isinstance(task["kind"], str) or task["kind"] not in KINDS for task in tasks(data))
    return bool(found) or unknown_kind


@pytest.mark.parametrize("path", files("broken"), ids=name)
def test_what_the_shape_checks_refuse_the_schema_refuses(path: Path) -> None:
    document = parse(path.read_bytes(), path.name)
    if not document.problems and document.root is not None:
        assert agrees(plain(document.root))


VALUES: list[Any] = [
    None, 1, -1, 1.5, True, "text", "", "{{ x }}", "retry", [], {}, [1], {"kind": "http"}, {"a": {"kind": "noop"}},
]  # fmt: skip
KEYS = ("spec", "input", "args", "kind", "url", "mode", "set", "when", "tool", "next", "do", "else", "then", "name")


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield data, key
        yield from places(value)


def mutant(data: Any, chance: random.Random) -> Any:
    """Drop, rename, replace or add one thing somewhere in a document."""
    changed = copy.deepcopy(data)
    holder, key = chance.choice(list(places(changed)))
    match chance.randrange(4):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[key + chance.choice("xs_")] = holder.pop(key)
        case 2 if isinstance(holder, dict):
            holder[chance.choice(KEYS)] = chance.choice(VALUES)
        case _:
            holder[key] = chance.choice(VALUES)
    return changed


DOCUMENTS = [data_of(path) for path in GOOD]


def disagreements(seeds: range) -> list[tuple[int, list[str]]]:
    apart = []
    for seed in seeds:
        chance = random.Random(seed)
        data = mutant(chance.choice(DOCUMENTS), chance)
        if not agrees(data):
            apart.append((seed, problems(data)))
    return apart


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_schema_and_shape_checks_agree_on_mutants(start: int) -> None:
    assert disagreements(range(start, start + 50)) == []


@pytest.mark.chaos
def test_schema_and_shape_checks_agree_on_many_mutants() -> None:
    assert disagreements(range(200, 5_000)) == []


def test_a_disagreement_is_seen() -> None:
    assert agrees({"apiVersion": "noetl.io/v10"})
    assert not VALIDATOR.is_valid({"apiVersion": "noetl.io/v10"})
    assert mutant({"a": 1}, random.Random(1)) != {"a": 1}


def with_step(**step: Any) -> dict[str, Any]:
    head = {"apiVersion": "noetl.io/v10", "kind": "Playbook", "metadata": {"name": "a", "path": "b"}}
    return {**head, "workflow": [{"step": "a", **step}]}


TASK = {"kind": "http", "url": "http://127.0.0.1"}
ALLOW = {"allow": True}


@pytest.mark.parametrize(
    "step",
    [
        {"tool": TASK},
        {"tool": {"get": TASK}},
        {"tool": [TASK, {"name": "b", **TASK}, {"c": TASK}]},
        {"tool": {"kind": "http", "spec": {"url": "http://127.0.0.1"}}},
        {"tool": {"kind": "http", "endpoint": "{{ workload.url }}"}},
        {"tool": {"kind": "sleep", "seconds": "{{ workload.pause }}"}},
        {"next": "b"},
        {"next": ["b", "c"]},
        {"next": [{"step": "b", "when": "{{ ctx.x }}", "input": {"a": 1}}, "c"]},
        {"next": {"spec": {"mode": "inclusive"}, "arcs": [{"step": "b", "when": True}]}},
        {"next": "b", "spec": {"policy": {"admit": {"rules": [{"when": "{{ x }}", "then": ALLOW}, {"else": ALLOW}]}}}},
        {"next": "b", "spec": {"policy": {"admit": {"rules": [{"else": {"then": ALLOW}}]}}}},
        {"next": "b", "spec": {"policy": {"admit": {"rules": [{"else": True, "then": ALLOW}]}}}},
        {"next": "b", "spec": {"policy": {"admit": {"rules": [{"else": None, "then": ALLOW}]}}}},
        {"next": "b", "spec": {"join": 2, "on_step_fail": "route_edge:late"}},
        {"tool": TASK, "loop": {"in": "{{ workload.x }}", "iterator": "x", "max_in_flight": "{{ workload.n }}"}},
    ],
    ids=str,
)
def test_every_form_is_accepted(step: dict[str, Any]) -> None:
    assert problems(with_step(**step)) == []


@pytest.mark.parametrize(
    "step",
    [
        {"tool": "http"},
        {"tool": []},
        {"tool": {"kind": "htpp", "url": "http://127.0.0.1"}},
        {"tool": {"kind": "http"}},
        {"tool": {**TASK, "ulr": "x"}},
        {"tool": {**TASK, "json": {}, "form": {}}},
        {"tool": {"kind": "sleep"}},
        {"tool": {"kind": "sleep", "seconds": 1, "until": "2030-01-01"}},
        {"tool": {"a": TASK, "b": TASK}},
        {"tool": {**TASK, "method": "FETCH"}},
        {"nxt": "b"},
        {"next": {"arcs": [{"when": True}]}},
        {"next": "b", "spec": {"join": 0}},
        {"next": "b", "spec": {"join": "some"}},
        {"next": "b", "spec": {"on_step_fail": "route_edge:"}},
        {"tool": TASK, "loop": {"in": [], "mode": "{{ workload.mode }}"}},
    ],
    ids=str,
)
def test_other_forms_are_refused(step: dict[str, Any]) -> None:
    assert problems(with_step(**step)) != []


@pytest.mark.parametrize(
    "workbook",
    [{"fetch": TASK}, [{"name": "fetch", **TASK}], [{"name": "fetch", "tool": TASK}], [{"fetch": TASK}]],
    ids=str,
)
def test_the_workbook_is_a_list_or_a_map(workbook: Any) -> None:
    assert problems({**with_step(next="b"), "workbook": workbook}) == []


@pytest.mark.parametrize(
    ("kind", "example"),
    [(kind.name, example) for kind in KINDS.values() for example in kind.examples],
    ids=lambda found: getattr(found, "title", found),
)
def test_the_examples_of_every_kind_are_valid(kind: str, example: Any) -> None:
    pipeline = plain(parse(example.yaml).root)
    assert problems(with_step(tool=pipeline)) == []


def test_editors_find_what_they_show() -> None:
    step = SCHEMA["$defs"]["step"]
    assert step["properties"]["desc"]["description"] == "What the step does."
    assert "Alias of `desc`." in step["properties"]["description"]["description"]
    mode = SCHEMA["$defs"]["next_spec"]["properties"]["mode"]
    assert mode["default"] == "exclusive"
    assert {"enum": ["exclusive", "inclusive"]} in mode["anyOf"]
    kinds = SCHEMA["$defs"]["task"]["properties"]["kind"]["oneOf"]
    assert {"const": "http", "description": KINDS["http"].summary} in kinds
    assert SCHEMA["$defs"]["task.http"]["properties"]["params"]["examples"] == [{"page": 1}]
    entry = SCHEMA["$defs"]["executor_spec"]["properties"]["entry_step"]
    assert "default" not in entry
    assert entry["description"].endswith("Default: the first in the file.")


def test_every_key_of_a_closed_level_is_described_and_others_are_refused() -> None:
    for level in LEVELS.values():
        if level.name in ("playbook", "task", "workbook_task", "task_spec", "cursor"):
            continue
        written = SCHEMA["$defs"][level.name]
        assert set(written["properties"]) == set(level.names())
        assert all(value["description"] for value in written["properties"].values())
        assert written.get("additionalProperties", True) == level.open


def test_a_cursor_takes_the_fields_of_its_kind() -> None:
    written = SCHEMA["$defs"]["cursor.duckdb"]
    assert {"kind", "auth", "claim", "key", "database", "params"} <= set(written["properties"])
    assert {"query", "command", "table", "mode"}.isdisjoint(written["properties"])
    assert written["additionalProperties"] is False
    assert set(written["required"]) == {"kind", "claim"}
