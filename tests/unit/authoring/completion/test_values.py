"""Completion of values: words, kinds, steps, tasks, credentials, playbooks."""

from __future__ import annotations

import pytest

from noetl.authoring.completion.complete import complete
from noetl.wiring.embedded import language_kinds
from tests.unit.authoring.editing import HEAD, offered, typed

STEP = f"{HEAD}  - step: store\n"


@pytest.mark.parametrize(
    ("typed_text", "expected"),
    [
        ("    next: ‸\n", ["fetch", "store"]),
        ("    next: f‸\n", ["fetch", "store"]),
        ("    next: [ ‸ ]\n", ["fetch", "store"]),
        ("    next: [ { step: ‸ } ]\n", ["fetch", "store"]),
        ('    next: { arcs: [ { step: "‸" } ] }\n', ["fetch", "store"]),
        ("    next: { arcs: [ { step: ‸\n", ["fetch", "store"]),
        ("    next:\n      spec: { mode: ‸ }\n", ["exclusive", "inclusive"]),
        ("    compensate: ‸\n", ["fetch"]),
        ("executor: { spec: { entry_step: ‸ } }\n", ["fetch", "store"]),
        ("executor: { spec: { final_step: ‸, on_parked: wait } }\n", ["fetch", "store"]),
        ("executor: { spec: { on_step_fail: ‸ } }\n", ["route_edge:onward", "halt", "continue"]),
        ("executor: { profile: ‸ }\n", ["local", "distributed", "auto"]),
        ("    tool: { kind: postgres, auth: ‸ }\n", ["pg_main"]),
        ("    tool: { kind: postgres, credential: ‸ }\n", ["pg_main"]),
        ("    tool: { kind: workbook, task: ‸ }\n", ["tidy"]),
        ("    tool: { kind: playbook, path: ‸ }\n", ["etl/child"]),
        ("    spec: { policy: { admit: { rules: [ { when: true, then: { allow: ‸\n", ["true", "false", "skip"]),
        (
            "    loop: { in: [], iterator: x, spec: { reduce: { ctx.total: ‸ } } }\n",
            ["sum", "min", "max", "append", "merge", "last", "count"],
        ),
        ("    spec: { join: ‸ }\n", ["all", "any", "each"]),
    ],
)
def test_values_of_the_field(typed_text: str, expected: list[str]) -> None:
    text = STEP + typed_text if typed_text.startswith(" ") else f"{STEP}    tool: {{ kind: noop }}\n{typed_text}"
    assert offered(text) == expected


@pytest.mark.parametrize(
    "before", ["    tool: { kind: ‸ }\n", "    tool:\n      - a:\n          kind: ‸\n", "    tool:\n      kind: ht‸\n"]
)
def test_every_tool_kind_is_offered_with_its_summary(before: str) -> None:
    items = complete(*typed(STEP + before)).items
    assert {item.label for item in items} == set(language_kinds())
    assert all(item.kind == "kind" and item.detail and item.text for item in items)


def test_a_jump_goes_to_the_tasks_of_its_own_pipeline() -> None:
    rule = "spec: { policy: { rules: [ { else: { then: { do: jump, to: ‸ } } } ] } }"
    assert offered(f"{STEP}    tool:\n      - a: {{ kind: noop }}\n      - b: {{ kind: noop, {rule} }}\n") == [
        "a", "b", "previous",
    ]  # fmt: skip


def test_actions_and_backoffs() -> None:
    then = "    tool:\n      kind: noop\n      spec:\n        policy:\n          rules:\n            - when: true\n              then:\n"
    assert offered(f"{STEP}{then}                do: ‸\n") == ["continue", "retry", "jump", "break", "fail", "skip"]
    assert offered(f"{STEP}{then}                do: retry\n                backoff: ‸\n") == [
        "none", "fixed", "linear", "exponential",
    ]  # fmt: skip


def test_the_default_of_a_choice_is_told() -> None:
    items = complete(*typed(f"{STEP}    next: {{ spec: {{ mode: ‸ }} }}\n")).items
    assert [(item.label, item.detail) for item in items] == [("exclusive", "Default."), ("inclusive", "")]


def test_only_what_has_been_typed_is_replaced() -> None:
    reading, cursor = typed(f"{STEP}    next: fe‸\n")
    assert reading.text[complete(reading, cursor).start : cursor] == "fe"
    reading, cursor = typed(f'{STEP}    next: "fe‸"\n')
    assert reading.text[complete(reading, cursor).start : cursor] == "fe"
