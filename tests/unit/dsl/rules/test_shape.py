"""Rules about shape: exact position, advice, and no false positives."""

from __future__ import annotations

import pytest

from tests.unit.dsl.rules.samples import (
    HEAD,
    checked,
    codes,
    indented,
    marked,
    with_gate,
    with_root,
    with_rules,
    with_step,
    with_task,
)

LOOP = "loop: { in: [1, 2], iterator: item }\n"

POINTED: list[tuple[str, list[str]]] = [
    # unknown and misplaced keys
    (with_root("«versoin»: 3"), ["NOE101"]),
    (with_step("tool: { kind: noop }\n«desk»: a"), ["NOE101"]),
    (with_step("tool: { kind: noop }\nspec: { policy: { «lifecycel»: { timeout_s: 3 } } }"), ["NOE101"]),
    (with_step("tool: { kind: noop }\n«timeout_s»: 3\njoin: any"), ["NOE102"]),
    (with_step("tool: { kind: noop }\nnext: { «mode»: inclusive, arcs: [] }"), ["NOE102"]),
    (with_step("tool: { kind: noop }\nspec: { «admit»: { rules: [{ else: { allow: true } }] } }"), ["NOE102"]),
    (with_step("tool: { kind: noop }\nspec: { policy: { «rollback»: on_fail } }"), ["NOE102"]),
    (with_step(LOOP.replace("item }", "item, «policy»: { exec: local } }") + "tool: { kind: noop }"), ["NOE102"]),
    (with_task("kind: noop\n«compensate»: work"), ["NOE102"]),
    (with_task("kind: noop\n«pool»: gpu"), ["NOE102"]),
    (with_task("kind: noop\n«rules»: [{ else: { do: fail } }]"), ["NOE102"]),
    (with_rules("- when: \"{{ outcome.status == 'ok' }}\"\n  then: { do: fail, «when»: true }"), ["NOE102"]),
    (with_root("workbook:\n  - name: w\n    tool: { kind: noop }\n    «auth»: key"), ["NOE102"]),
    (with_root("workbook:\n  - name: w\n    tool: { kind: noop }\n    «colour»: red"), ["NOE101"]),
    # names that no index holds
    (with_root("executor: { spec: { pool: «" + "p" * 201 + "» } }"), ["NOE137"]),
    (with_step("tool: { kind: noop }\nspec: { pool: «" + "p" * 201 + "» }"), ["NOE137"]),
    (with_step("tool: { kind: noop }\nspec: { requires: «{ tags: [" + ", ".join(["gpu"] * 51) + "] }» }"), ["NOE137"]),
    (with_step("tool:\n  - «" + "t" * 201 + "»: { kind: noop }"), ["NOE137"]),
    # types, missing fields, values
    (with_root("executor: «fast»"), ["NOE103"]),
    (with_step("tool: { kind: noop }\ndesc: «[a]»"), ["NOE103"]),
    (with_step("tool: { kind: noop }\nnext: { arcs: [«7»] }"), ["NOE103"]),
    (with_task("kind: http\nurl: https://example.org\nheaders: «[a]»"), ["NOE103"]),
    (with_root("executor: { spec: { retries: { plugin: { max_attempts: «many» } } } }"), ["NOE103"]),
    (with_step("tool: { kind: noop }\nspec: { policy: { admit: «{}» } }"), ["NOE104"]),
    (with_step("tool: { kind: noop }\nloop: { cursor: «{ kind: postgres, key: id }», iterator: row }"), ["NOE104"]),
    (with_root("executor: { spec: { result: { select: [«{ path: $.a }»] } } }"), ["NOE104"]),
    (with_step("tool: { kind: noop }\nspec: { join: «some» }"), ["NOE105"]),
    (with_root("policy: { rollback: «always» }"), ["NOE105"]),
    (with_root("executor: { profile: «remote» }"), ["NOE105"]),
    (with_root("executor: { spec: { concurrency: { key: «''», limit: «1000001» } } }"), ["NOE105", "NOE105"]),
    (with_root("executor: { spec: { concurrency: { key: «" + "k" * 201 + "», limit: «" + "9" * 23 + "» } } }"), ["NOE105", "NOE105"]),
    (with_root("executor: { spec: { concurrency: { limit: «0» } } }"), ["NOE105"]),
    (with_root("executor: { spec: { rate: { key: «''», per_second: 1, burst: «1.0e+20» } } }"), ["NOE105", "NOE105"]),
    *(
        (with_root(f"executor: {{ spec: {{ rate: {{ per_second: «{text}» }} }} }}"), ["NOE105"])
        for text in ("0", "-1", ".nan", ".inf", "1e400", "1" + "0" * 400, "0.00001", "1.0e-300")
    ),
    # actions and writes at wrong places
    (with_step("tool: { kind: noop }\n«do»: retry\nattempts: 3"), ["NOE109"]),
    (with_step("tool: { kind: noop }\nspec: { «do»: retry }"), ["NOE109"]),
    (with_step(LOOP.replace("item }", "item, «do»: skip }") + "tool: { kind: noop }"), ["NOE109"]),
    (with_gate("- when: true\n  then: { allow: true, «attempts»: 3 }"), ["NOE109"]),
    (with_step("tool: { kind: noop }\nnext: { spec: { «set»: { x: 1 } }, arcs: [] }"), ["NOE110"]),
    (with_root("executor: { spec: { «set_ctx»: { x: 1 } } }"), ["NOE110"]),
    # names
    (with_step("tool: { kind: noop }\nset: { «ctx.a_ref»: true }"), ["NOE111"]),
    (with_step("tool: { kind: noop }\nset: { «a»: '{{ outcome.ref }}' }"), ["NOE111"]),
    (with_task("kind: noop\nset: { «ctx.a_ref»: '{{ output.data }}' }"), ["NOE111"]),
    (with_step("input: { «_ref»: 1 }\ntool: { kind: noop }"), ["NOE112"]),
    (with_step("tool: [{ «_store»: { kind: noop } }]"), ["NOE112"]),
    (with_step(LOOP.replace("item }", "«my item» }") + "tool: { kind: noop }"), ["NOE122"]),
    (with_step("tool: [{ «2nd»: { kind: noop } }]"), ["NOE122"]),
    # one setting twice
    (with_root("executor: { profile: local, «kind»: local }"), ["NOE113"]),
    (with_task("kind: noop\ntimeout: 3\n«timeout_seconds»: 4"), ["NOE113"]),
    (with_task("kind: noop\ntimeout_ms: 3\nspec: { «timeout»: 4 }"), ["NOE113"]),
    (with_task("kind: noop\n«priority»: 3\nspec: { priority: 4 }"), ["NOE113"]),
    (with_task("kind: noop\ndesc: a\n«description»: b"), ["NOE113"]),
    # templates that are not rendered
    (with_root("executor: { spec: { entry_step: «'{{ workload.first }}'» } }"), ["NOE114"]),
    (with_step("tool: { kind: noop }\nspec: { join: «'{{ workload.n }}'» }"), ["NOE114"]),
    (with_step("tool: [{ name: «'{{ execution_id }}'», kind: noop }]"), ["NOE114"]),
    (with_step(LOOP.replace("iterator: item", "iterator: «'{{ execution_id }}'»") + "tool: { kind: noop }"), ["NOE114"]),
    (with_gate("- when: true\n  then: { allow: «'{{ ctx.ready }}'» }"), ["NOE114"]),
    # rules, loops, writes
    (with_gate("- when: true\n  then: { allow: true }\n- «else»:"), ["NOE117"]),
    (with_gate("- when: true\n  then: { allow: true }\n- else: { allow: false }\n- «else»: { allow: true }"), ["NOE118"]),
    (with_step("loop: { in: , iterator: item }\ntool: { kind: noop }").replace("{ in:", "«{ in:").replace("item }", "item }»"), ["NOE119"]),
    (with_rules("- when: \"{{ outcome.status == 'ok' }}\"\n  then: { do: break, «to»: work_task }"), ["NOE120"]),
    (with_step("tool: { kind: noop }\nset: { «outcome.x»: 1 }"), ["NOE121"]),
    (with_step("tool: { kind: noop }\nset: { «'{{ execution_id }}'»: 1 }"), ["NOE121"]),
    (with_step("tool: { kind: noop }\nset: { «a..b»: 1 }"), ["NOE121"]),
    (with_step("tool: { kind: noop }\nset_ctx: { «iter.x»: 1 }"), ["NOE121"]),
    (with_step("tool: { kind: noop }\nset: { «iter.x»: 1 }"), ["NOE124"]),
    (with_step("tool: { kind: noop }\nset: { x: 1, ctx: { «x»: 2 } }"), ["NOE127"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), POINTED)
def test_it_points_at_the_very_words(text: str, wanted: list[str]) -> None:
    shown, found = marked(text)
    assert (shown, found) == (text, wanted)


SILENT: list[str] = [
    with_root("executor: { spec: { on_step_fail: 'route_edge:a', workload_schema: { anything: { goes: 1 } } } }").replace(
        "tool: { kind: noop }", "tool: { kind: noop }\n    next: [{ step: work, label: a, when: \"{{ ctx.again | default(false) }}\" }]"),
    with_root("policy: { rollback: never }"),
    with_root("keychain: { a: b, c: { kind: bearer, anything: 1 }, d: }"),
    with_root("workbook: { w: { kind: noop, desc: 'Reads {{ nothing }}' } }"),
    with_root("executor: { requires: { tools: [http] }, spec: { retries: { sink: { base_ms: 0 } } } }"),
    with_step("desc: 'Reads {{ nothing }} at all'\ntool: { kind: noop }\nnext: []"),
    with_step("tool: { kind: noop }\nspec: { join: each, timeout_s: '{{ workload.patience | default(3) }}' }"),
    with_step("tool: { kind: noop }\nnext: { arcs: [] }"),
    with_step("tool:\n  only: { kind: noop }"),
    with_step("tool: { kind: noop }\nset: { user.name: a, ctx.user.mail: b }"),
    with_step("tool: { kind: noop }\nset: { ctx.git_ref: refs/heads/main, a_ref: , b_ref: noetl://x, c_ref: '{{ ctx.x_ref | default(none) }}' }"),
    with_step("tool: { kind: noop }\nset: { ctx.ref: '{{ output.data.ref }}', ctx.rows: '{{ outcome.result }}' }"),
    with_step("tool: { kind: noop }\nset: { ctx.a_ref: \"{{ outcome.result.file_ref }}\" }"),
    with_step(LOOP + "tool: { kind: noop, set_iter: { page: 1 } }\nset: { iter_count: 3 }"),
    with_step(LOOP.replace("item }", "item, max_in_flight: 1 }") + "tool: { kind: noop }"),
    with_step("loop: { in: '{{ workload.list | default([]) }}' }\ntool: { kind: noop }"),
    with_task("kind: shell\ncommand: \"awk '{print $1}' file\""),
    with_task("kind: python\ncode: |\n  result = '{{ not a template }}'"),
    with_task("kind: http\nspec: { url: https://example.org, auth: a, timeout_ms: 3, credential: }"),
    with_task("kind: noop\nresult: { as: a, sink: b }\nspec: { result: { store: file } }"),
    with_rules("- when: \"{{ outcome.status == 'ok' }}\"\n  then: { do: continue }\n- else:\n    do: retry\n    attempts: '{{ 1 + 2 }}'"),
    with_rules("- when: \"{{ outcome.status == 'ok' }}\"\n  then: { do: continue }\n- else: true\n  then: { do: fail }"),
]  # fmt: skip


@pytest.mark.parametrize("text", SILENT)
def test_it_is_silent_where_nothing_is_wrong(text: str) -> None:
    assert codes(text) == []


ADVICE: list[tuple[str, str]] = [
    (with_step("tool: { kind: noop }\nmode: parallel"), "under `loop`"),
    (with_step("tool: { kind: noop }\nmode: exclusive"), "under `next.spec`"),
    (with_task("kind: noop\nwhen: true"), "`spec.policy.admit.rules`"),
    (with_step("tool: 5"), "tool: { kind: 5 }"),
    (with_step("tool: { kind: noop }\nnext: { arcs: { step: work } }"), "after `- `"),
    (with_root("executor: { spec: { strict_templates: 'false' } }"), "Write false, without quotes."),
    (with_root("executor: { spec: { timeout_s: '60' } }"), "without quotes: 60"),
    (with_step("tool: { kind: noop }\nspec: { durability: taks }"), "durability: task"),
    (HEAD.replace("v10", "v2").replace("noetl.io", "noetl") + "workflow: [{ step: a, tool: { kind: noop } }]", "noetl.io/v2"),
    (with_step("tool: [{ fetch-page: { kind: noop } }]"), "'fetch_page'"),
    (with_step("tool: { kind: noop }\nset: { args.x: 1 }"), "ctx.x"),
    (with_task("kind: noop\nset: { iter.n: 1 }"), "`step.n`"),
    (with_step("tool: { kind: noop }\ncolour: red"), "Use one of: step, desc"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "advice"), ADVICE)
def test_the_fix_says_what_to_write(text: str, advice: str) -> None:
    (found,) = checked(text)
    assert advice in found.fix


def test_keys_for_one_place_are_told_together() -> None:
    (found,) = checked(with_root("executor: { entry_step: work, on_parked: finish, timeout_s: 3 }"))
    assert found.message.startswith("'entry_step', 'on_parked' and 'timeout_s' belong under `spec`")


def test_all_that_a_map_lacks_is_told_together() -> None:
    (found,) = checked(
        HEAD.replace("{ name: test, path: tests/test }", "{}") + "workflow: [{ step: a, tool: { kind: noop } }]"
    )
    assert (found.code, found.line) == ("NOE104", 3)
    assert found.message == "`metadata` needs 'name' and 'path', which are missing."
    assert "Add `name`" in found.fix
    assert "Add `path`" in found.fix


def test_keys_for_two_places_are_told_apart() -> None:
    assert codes(with_step("tool: { kind: noop }\njoin: any\nmode: inclusive")) == ["NOE102", "NOE102"]


def test_unknown_keys_are_warnings_for_the_tolerant() -> None:
    text = with_step("tool: { kind: noop }\ncolour: red\njoin: any")
    assert [found.severity for found in checked(text)] == ["error", "error"]
    assert [found.severity for found in checked(text, tolerant=True)] == ["warning", "warning"]


@pytest.mark.parametrize("key", ["apiVersion", "kind", "metadata", "workflow"])
def test_a_misspelled_key_is_not_also_missing(key: str) -> None:
    text = HEAD + "workflow:\n  - step: work\n    tool: { kind: noop }\n"
    swapped = key[:2] + key[3] + key[2] + key[4:]
    assert codes(text.replace(f"{key}:", f"{swapped}:", 1)) == ["NOE101"]
    lines = text.split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith(f"{key}:"))
    rest = lines[:at] + [line for line in lines[at + 1 :] if key != "workflow" or not line.startswith(" ")]
    assert codes("\n".join(rest)) == ["NOE108" if key in ("apiVersion", "kind") else "NOE104"]


@pytest.mark.parametrize(
    ("body", "codes_of_the_body"),
    [
        ("- when: true\n  thn: { allow: true }", ["NOE101"]), ("- whn: true\n  then: { allow: true }", ["NOE101"]),
        ("- els: { then: { allow: true } }", ["NOE101"]), ("- when: true\n  allow: true", ["NOE102"]),
        ("- { }\n- else: { allow: true }", ["NOE117"]),
    ],
)  # fmt: skip
def test_a_rule_with_a_misspelled_part_is_told_once(body: str, codes_of_the_body: list[str]) -> None:
    assert codes(with_gate(body)) == codes_of_the_body


def test_the_second_step_of_a_name_is_told_with_the_line_of_the_first() -> None:
    step = "  - step: {}\n    tool: {{ kind: noop }}\n"
    found = checked(HEAD + "workflow:\n" + step.format("a") + step.format("a") + step.format("a"))
    assert [(one.code, one.line) for one in found] == [("NOE106", 7), ("NOE106", 9)]
    assert all("line 5" in one.message for one in found)


def test_labels_need_to_differ_within_their_step_only() -> None:
    tool = "tool: [{ call: { kind: noop } }]"
    text = HEAD + "workflow:\n  - step: a\n    next: b\n" + indented(tool, 4) + "  - step: b\n" + indented(tool, 4)
    assert codes(text) == []


def test_a_name_used_twice_is_found_in_every_list_of_declarations() -> None:
    assert codes(with_root("keychain: [a, { name: a }]")) == ["NOE123"]
    assert codes(with_root("workbook: [{ name: a, kind: noop }, { a: { kind: noop } }]")) == ["NOE123"]


def test_a_shared_node_is_told_once() -> None:
    text = HEAD + (
        "workflow:\n  - step: a\n    tool: &t { kind: http, url: https://example.org, «timeout»: soon }\n    next: b\n"
        "  - step: b\n    tool: *t\n"
    )
    assert codes(text.replace("«", "").replace("»", "")) == ["NOE103"]


def test_a_word_of_a_list_names_the_words_that_are_allowed() -> None:
    triggers = "triggers: [{ ended: e, path: other/*, status: [waiting, falied] }]\n"
    text = HEAD + "workflow:\n  - step: a\n    tool: { kind: noop }\n" + triggers
    waiting, failed = checked(text)
    words = "one of completed, failed, cancelled, partial"
    assert (waiting.message, waiting.fix) == (f"An item of 'status' takes {words}, not 'waiting'.", f"Write {words}.")
    assert failed.fix == "Write `failed`."


def test_a_word_in_capitals_is_suggested_too() -> None:
    (found,) = checked(with_task("  kind: http\n  method: GETT\n  url: https://example.org"))
    assert found.message.endswith("Did you mean 'GET'?")
    assert found.fix == "Write `method: GET`."


def test_an_item_of_the_wrong_type_is_told_as_an_item() -> None:
    (found,) = checked(HEAD + "workflow:\n  - step: a\n    tool: { kind: noop }\n  - just text\n")
    assert found.message == "An item of 'workflow' takes a map, not the text 'just text'."


def test_what_belongs_to_an_arc_is_one_mistake() -> None:
    (found,) = checked(with_step("tool: { kind: noop }\nnext: { step: work, when: true, args: { a: 1 } }"))
    assert found.code == "NOE102"
    assert "arcs" in found.fix


@pytest.mark.parametrize(
    "items", ["5", "true", "{ a: 1 }", "some words", "'{\"a\": 1}'", "workload.rows", "'" + "[" * 9999 + "'"]
)
def test_a_loop_goes_over_a_list(items: str) -> None:
    (found,) = checked(with_step(f"loop: {{ in: {items}, iterator: item }}\ntool: {{ kind: noop }}"))
    assert found.code == "NOE119"
    assert ('`in: "{{ workload.rows }}"`' in found.fix) == (items == "workload.rows")


@pytest.mark.parametrize("items", ["[1]", "'[]'", "'[1, 2]'", "'{{ workload.rows }}'", "'{% if 1 %}[]{% endif %}'"])
def test_what_may_be_a_list_is_fine(items: str) -> None:
    assert codes(with_step(f"loop: {{ in: {items}, iterator: item }}\ntool: {{ kind: noop }}")) == []


# Keys of other tools ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("needs: other", "`next: <this step>`"),
        ("depends_on: [other]", "`next: <this step>`"),
        ("if: x", "on the arc"),
        ("retries: 3", "max_attempts"),
        ("schedule: '@daily'", "`noetl schedule create`"),
        ("env: { A: b }", "kind: shell"),
        ("inputs: { a: 1 }", "`input: {…}`"),
        ("strategy: { matrix: [1] }", "loop"),
        ("continue-on-error: true", "do: continue"),
    ],
)
def test_a_key_of_another_tool_on_a_step_says_what_replaces_it(line: str, instead: str) -> None:
    (found,) = checked(with_step(f"{line}\ntool: {{ kind: noop }}"))
    assert (found.code, found.severity, found.line) == ("NOE101", "error", 6)
    assert "other workflow tools have it" in found.message
    assert instead in found.fix


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("on: push", "`POST /api/execute`"),
        ("schedule: '0 7 * * *'", "cron"),
        ("inputs: { a: 1 }", "`workload`"),
        ("env: { A: b }", "`workload`"),
        ("secrets: [a]", "`keychain`"),
        ("id: hello", "`metadata: {name: …, path: …}`"),
    ],
)
def test_a_key_of_another_tool_at_the_root_says_what_replaces_it(line: str, instead: str) -> None:
    (found,) = checked(with_root(line))
    assert (found.code, found.line) == ("NOE101", 4)
    assert instead in found.fix


@pytest.mark.parametrize("key", ["jobs", "tasks", "dag", "stages"])
def test_the_workflow_of_another_tool_is_not_also_missing(key: str) -> None:
    (found,) = checked(f"{HEAD}{key}:\n  - name: a\n")
    assert (found.code, "`workflow`" in found.fix) == ("NOE101", True)


def test_a_run_line_is_not_also_a_step_without_work() -> None:
    (found,) = checked(with_step("run: echo hello"))
    assert (found.code, "kind: shell" in found.fix) == ("NOE101", True)


def test_a_key_of_another_tool_on_a_task_says_what_replaces_it() -> None:
    (found,) = checked(with_task("kind: shell\nrun: echo hello"))
    assert (found.code, "`command: …`" in found.fix) == ("NOE502", True)


def test_steps_ordered_by_needs_are_not_also_unreachable() -> None:
    body = "  - step: work\n    tool: { kind: noop }\n  - step: after\n    needs: work\n    tool: { kind: noop }\n"
    assert [found.code for found in checked(f"{HEAD}workflow:\n{body}")] == ["NOE101"]


def test_settings_of_ours_keep_their_place() -> None:
    (found,) = checked(with_step("retries: { plugin: { max_attempts: 2 } }\ntool: { kind: noop }"))
    assert (found.code, "Move it under `spec`" in found.fix) == ("NOE102", True)
    (found,) = checked(with_step("env: { A: b }\ntool: { kind: shell, command: env }"))
    assert (found.code, "under `tool`" in found.fix) == ("NOE102", True)
