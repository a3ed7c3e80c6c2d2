"""What lies below a path, where completion alone does not show it."""

from __future__ import annotations

from noetl.authoring.language.members import describe_value, members
from tests.unit.authoring.editing import HEAD, typed


def below(text: str, *path: str) -> list[str]:
    reading, offset = typed(text)
    return [*members(reading.subject, reading.sites_at(offset)[0], path)]


STEP = f"{HEAD}  - step: store\n"


def test_a_name_means_what_wins() -> None:
    text = f'{STEP}    tool: [ {{ name: fetch, kind: http, url: x }}, {{ kind: noop, result: "{{{{ ‸ }}}}" }} ]\n'
    assert "status_code" in below(text, "fetch")
    assert "stats" not in below(text, "fetch")


def test_the_task_before_is_known_by_its_kind() -> None:
    text = f'{STEP}    tool: [ {{ kind: shell, command: ls }}, {{ kind: noop, result: "{{{{ ‸ }}}}" }} ]\n'
    assert "returncode" in below(text, "_prev")
    assert "returncode" in below(text, "_prev", "data")


def test_the_first_task_has_none_before() -> None:
    assert below(f'{STEP}    tool: {{ kind: noop, result: "{{{{ ‸ }}}}" }}\n', "_prev") == []


def test_a_call_of_the_workbook_gives_what_the_task_gives() -> None:
    text = f'{STEP.replace("tidy: { kind: noop", "tidy: { kind: shell, command: ls")}    tool: [ {{ a: {{ kind: workbook, task: tidy }} }}, {{ kind: noop, result: "{{{{ ‸ }}}}" }} ]\n'
    assert "stdout" in below(text, "a")


def test_selected_parts_are_keys() -> None:
    select = "output: { select: [ { path: $.n, as: count } ] }"
    text = f'{STEP}    tool: [ {{ a: {{ kind: shell, command: ls, {select} }} }}, {{ kind: noop, result: "{{{{ ‸ }}}}" }} ]\n'
    assert "count" in below(text, "a")


def test_the_final_step_has_the_results_of_all() -> None:
    text = f'{STEP}    tool: {{ kind: noop, result: "{{{{ ‸ }}}}" }}\nexecutor: {{ spec: {{ final_step: store }} }}\n'
    assert {"counts", "failures", "results"} <= set(below(text, "args"))
    assert below(text, "args", "results") == ["fetch", "store"]


def test_scratch_values_and_signals() -> None:
    text = f'{STEP}    tool: {{ kind: noop, result: "{{{{ ‸ }}}}", set: {{ step.seen: 1 }} }}\n'
    assert below(text, "step") == ["seen"]
    assert below(text, "event") == []
    assert below(text) == []


def test_defaults_are_shown_in_a_few_words() -> None:
    values: list[object] = [None, True, 1.5, "a\nb", {}, [], "x" * 99]
    words = ["No default.", "`true`", "`1.5`", "`a b`", "A map.", "A list.", f"`{'x' * 59}…`"]
    assert [describe_value(value) for value in values] == words
