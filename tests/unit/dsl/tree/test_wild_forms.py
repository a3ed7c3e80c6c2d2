"""Spellings of playbooks in the wild, and the trees that they mean."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from noetl.dsl.tree.canonical import canonical
from noetl.dsl.tree.playbook import Playbook, Value
from noetl.dsl.validate import validate
from noetl.wiring.embedded import language_kinds
from tests.unit.dsl.tree.test_normalize import read, step_of, task_of

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: a, path: tests/a }\n"


def data(values: dict[str, Value]) -> dict[str, Any]:
    return {name: value.data for name, value in values.items()}


def found(text: str) -> dict[str, str]:
    """Return the codes of a playbook's diagnostics with their severities."""
    return {one.code: one.severity for one in validate(HEAD + text, "a.yaml", language_kinds())}


@pytest.mark.parametrize(
    "body",
    [
        "kind: playbook\npath: b\npayload: { x: 1 }",
        "kind: playbook\npath: b\nspec: { payload: { x: 1 } }",
        "kind: playbook\npath: b\ninput: { x: 1 }",
    ],
)
def test_the_payload_of_a_child_is_its_input(body: str) -> None:
    assert task_of(body) == task_of("kind: playbook\npath: b\nargs: { x: 1 }")


def test_input_wins_over_payload() -> None:
    task = task_of("kind: playbook\npath: b\npayload: { x: 1, y: 1 }\ninput: { x: 2 }")
    assert data(task.input) == {"x": 2, "y": 1}
    assert "payload" not in task.fields


def test_a_payload_that_is_a_template_stays_one() -> None:
    task = task_of('kind: playbook\npath: b\npayload: "{{ workload }}"')
    assert data(task.fields) == {"path": "b", "payload": "{{ workload }}"}


def test_the_task_of_a_child_in_a_pipeline_is_its_label() -> None:
    step = step_of(
        "tool:\n  - { kind: playbook, path: b, task: one }\n  - { kind: playbook, path: b, name: two, task: x }"
    )
    assert [task.label for task in step.tasks] == ["one", "two"]
    assert all("task" not in task.fields for task in step.tasks)
    assert task_of("kind: playbook\npath: b\ntask: one").label == "a_task"


OUTPUT = "{ output_select: [n], store: { kind: kv }, inline_max_bytes: 16 }"


@pytest.mark.parametrize("place", [f"output: {OUTPUT}", f"spec: {{ output: {OUTPUT} }}"])
def test_the_output_of_a_step_is_that_of_its_last_task(place: str) -> None:
    step = step_of(f"tool:\n  - one: {{ kind: noop }}\n  - two: {{ kind: noop }}\n{place}")
    same = step_of(f"tool:\n  - one: {{ kind: noop }}\n  - two: {{ kind: noop, output: {OUTPUT} }}")
    assert step == same
    assert "output" not in step.spec


def test_what_the_last_task_says_of_its_output_wins() -> None:
    step = step_of(
        "tool: { kind: noop, output: { inline_max_bytes: 1 } }\noutput: { inline_max_bytes: 2, store: file }"
    )
    assert step.tasks[0].spec["result"].data == {"inline_max_bytes": 1, "store": "file"}


@pytest.mark.parametrize(
    ("written", "is_error"),
    [("quiet", False), ("ignore", False), ("end", False), ("error", True), ("fail", True)],
)
def test_what_no_arc_matches_is_a_setting_of_the_step(written: str, is_error: bool) -> None:
    step = step_of(f"tool: {{ kind: noop }}\nnext: {{ spec: {{ on_no_match: {written} }}, arcs: [{{ step: b }}] }}")
    assert step == step_of(
        f"tool: {{ kind: noop }}\nspec: {{ no_next_is_error: {str(is_error).lower()} }}\nnext: {{ arcs: [{{ step: b }}] }}"
    )


def test_what_the_step_itself_says_wins_over_its_router() -> None:
    step = step_of("spec: { no_next_is_error: true }\nnext: { spec: { on_no_match: quiet }, arcs: [{ step: b }] }")
    assert step.spec["no_next_is_error"].data is True


POLICY = "policy: { defaults: { retries: { plugin: { max_attempts: 2 } }, other: 1 }, results: { inline_max_bytes: 9, x: 1 } }"
MEANT = {"retries": {"plugin": {"max_attempts": 2}}, "result": {"inline_max_bytes": 9}}


@pytest.mark.parametrize("level", ["executor", "step", "loop", "task"])
def test_settings_in_a_policy_are_settings_of_its_spec(level: str) -> None:
    spec = f"spec: {{ {POLICY} }}"
    workflow = {
        "executor": f"executor: {{ {spec} }}\nworkflow:\n  - step: a\n    tool: {{ kind: noop }}\n",
        "step": f"workflow:\n  - step: a\n    {spec}\n    tool: {{ kind: noop }}\n",
        "loop": f"workflow:\n  - step: a\n    loop: {{ in: [1], {spec} }}\n    tool: {{ kind: noop }}\n",
        "task": f"workflow:\n  - step: a\n    tool: {{ kind: noop, {spec} }}\n",
    }[level]
    tree = read(workflow)
    step = tree.workflow[0]
    specs = {
        "executor": tree.executor.spec,
        "step": step.spec,
        "loop": step.loop.spec if step.loop else {},
        "task": step.tasks[0].spec,
    }
    assert data(specs[level]) == MEANT
    assert "error" not in found(workflow).values()


def test_a_gate_with_a_mode_alone_admits_all() -> None:
    step = step_of("spec: { policy: { admit: { mode: always } } }\ntool: { kind: noop }")
    assert step.admit is None
    gate = "workflow:\n  - step: a\n    spec: { policy: { admit: {KEY} } }\n    tool: { kind: noop }\n"
    assert found(gate.replace("KEY", " mode: always ")) == {"NOE138": "hint"}
    assert found(gate.replace("KEY", "")) == {"NOE104": "error"}


def test_the_spec_wins_over_its_policy() -> None:
    step = step_of(
        "spec: { pool: a, result: { inline_max_bytes: 1 }, policy: { defaults: { pool: b }, "
        "results: { inline_max_bytes: 2, store: file } } }\ntool: { kind: noop }"
    )
    assert data(step.spec) == {"pool": "a", "result": {"inline_max_bytes": 1, "store": "file"}}


def test_a_cursor_loop_in_frames_is_a_parallel_one() -> None:
    cursor = "cursor: { kind: postgres, claim: SELECT 1 }"
    step = step_of(f"loop: {{ {cursor}, iterator: r, spec: {{ mode: cursor, frame: {{ max_rows: 5 }} }} }}")
    assert step == step_of(f"loop: {{ {cursor}, iterator: r, mode: parallel, frame: {{ max_rows: 5 }} }}")
    assert step.loop is not None
    assert data(step.loop.spec) == {"mode": "parallel", "frame": {"max_rows": 5}}


def test_frames_without_a_mode_come_one_by_one() -> None:
    step = step_of("loop: { cursor: { kind: postgres, claim: SELECT 1 }, frame: { max_rows: 5 } }")
    assert step.loop is not None
    assert data(step.loop.spec) == {"frame": {"max_rows": 5}, "mode": "parallel", "max_in_flight": 1}


def test_the_pool_of_connections_is_an_input_of_its_task() -> None:
    task = task_of("kind: postgres\nquery: SELECT 1\nspec: { pool: { max_size: 3 } }")
    assert task == task_of("kind: postgres\nquery: SELECT 1\npool: { max_size: 3 }")
    workers = task_of("kind: postgres\nquery: SELECT 1\nspec: { pool: gpu }")
    assert (data(workers.spec), "pool" in workers.fields) == ({"pool": "gpu"}, False)


@pytest.mark.parametrize("place", ["assert: { expects: [x] }", "spec: { assert: { expects: [x] } }"])
def test_what_a_task_asserts_is_a_setting(place: str) -> None:
    assert data(task_of(f"kind: noop\n{place}").spec) == {"assert": {"expects": ["x"]}}


EVERYTHING = """\
executor: { version: noetl-runtime/1, spec: { policy: { results: { reference: true } } } }
workload: { rows: [] }
workbook:
  - { name: add, kind: python, input: { a: null, b: 2 }, code: "result = a + b" }
workflow:
  - step: start
    spec: { policy: { admit: { mode: exclusive, rules: [{ else: { then: { allow: true } } }] } } }
    tool:
      - { name: get, kind: http, url: "http://example.com", verify_ssl: "{{ workload.tls }}" }
      - { name: put, kind: duckdb, table: t, mode: replace, values: "{{ workload.rows }}" }
      - { name: child, kind: playbook, path: tests/b, payload: { n: 1 } }
      - { name: sum, kind: workbook, task: add, args: { a: 1 } }
      - { name: code, kind: python, libs: [psycopg2-binary], script: { source: { type: inline, code: "result = 1" } } }
      - name: last
        kind: noop
        assert: { expects: [x], returns: result }
    output: { store: kv, output_select: [n] }
    next:
      spec: { mode: exclusive, on_no_match: quiet }
      arcs: [{ step: load, when: "{{ output.status == 'ok' }}" }]
  - step: load
    tool: { kind: artifact, action: get }
    input: { result_ref: "{{ start._ref }}" }
    next: { arcs: [{ step: rows }] }
  - step: rows
    loop:
      iterator: row
      cursor: { kind: duckdb, database: x.duckdb, claim: "SELECT 1 LIMIT {{ frame.max_rows }}" }
      spec: { mode: cursor, max_in_flight: 2, frame: { max_rows: 5, lease_seconds: 9, process: frame } }
    tool: { kind: noop, message: "{{ iter.row | length }}" }
"""


def test_a_playbook_of_the_wild_has_no_errors() -> None:
    assert (
        "error" not in found(EVERYTHING.replace("workload: { rows: [] }", "workload: { rows: [], tls: true }")).values()
    )


def test_its_tree_survives_being_written() -> None:
    tree: Playbook = read(HEAD + EVERYTHING)
    assert read(yaml.safe_dump(canonical(tree), sort_keys=False)) == tree


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("executor: { version: 1 }\n", "NOE138"),
        ("", ""),
    ],
)
def test_a_key_without_an_effect_is_a_hint(lines: str, code: str) -> None:
    codes = found(f"{lines}workflow:\n  - step: a\n    tool: {{ kind: noop }}\n")
    assert codes == ({code: "hint"} if code else {})


@pytest.mark.parametrize(
    ("args", "needs"),
    [
        ("tool: { kind: artifact, action: get }", True),
        ("tool: { kind: artifact, action: get, input: { other: 1 } }", True),
        ("tool: { kind: artifact, action: get, input: { result_ref: x } }", False),
        ("tool: { kind: artifact, action: get, args: { result_ref: x } }", False),
        ("tool: { kind: artifact, action: get }\n    input: { result_ref: x }", False),
        ("tool: { kind: artifact, action: get, result_ref: x }", False),
    ],
)
def test_an_artifact_to_read_may_be_given_as_an_input(args: str, needs: bool) -> None:
    assert ("NOE503" in found(f"workflow:\n  - step: a\n    {args}\n")) is needs
