"""Rules about the meaning of templates: order, outcomes, conditions, keys."""

from __future__ import annotations

import pytest

from tests.unit.dsl.rules.samples import condition, diagnostics, report, rule, task

# Order --------------------------------------------------------------------------------------------------------------

BRANCHES = """\
    workflow:
      - {{ step: start, next: [left, right] }}
      - {{ step: left, tool: {{ kind: noop, result: {{ ready: true }} }}, set: {{ ctx.left_done: true }} }}
      - step: right
        {0}
        tool: {{ kind: noop, message: "{{{{ left.ready }}}}" }}
"""


def gate(when: str) -> str:
    return BRANCHES.format(
        f'spec: {{ policy: {{ admit: {{ rules: [{{ when: "{{{{ {when} }}}}", then: {{ allow: true }} }}] }} }} }}'
    )


def test_a_parallel_branch_need_not_have_ended() -> None:
    assert report(BRANCHES.format("desc: none")) == [("NOE313", "left")]


@pytest.mark.parametrize("when", ["done('left')", "left.ready", "ctx.left_done"])
def test_a_gate_that_waits_for_a_step_makes_its_result_readable(when: str) -> None:
    assert report(gate(when)) == []


def test_a_gate_that_waits_for_something_else_does_not() -> None:
    assert report(gate("done('start')")) == [("NOE313", "left")]


def test_what_lies_behind_a_gate_may_read_what_the_gate_waited_for() -> None:
    body = (
        gate("done('left')")
        + """\
        next: after
      - { step: after, tool: { kind: noop, message: "{{ left.ready }}" } }
"""
    )
    assert report(body) == []


def test_the_final_step_and_compensations_see_everything() -> None:
    body = """\
    policy: { rollback: on_fail }
    executor: { spec: { entry_step: work, final_step: report } }
    workflow:
      - { step: report, tool: { kind: noop, message: "{{ work.id }}" } }
      - { step: undo, tool: { kind: noop, message: "{{ work.id }} {{ args.reason }}" } }
      - { step: work, tool: { kind: noop, result: { id: 1 } }, compensate: undo }
    """
    assert report(body) == []


def test_in_a_cycle_every_step_may_have_run() -> None:
    body = """\
    workload: { most: 3 }
    workflow:
      - step: a
        tool: { kind: noop, result: { n: "{{ b.n | default(0) }}", before: "{{ [a.n, b.n] }}" } }
        next: b
      - step: b
        tool: { kind: noop, result: { n: 2 } }
        next: { arcs: [{ step: a, when: "{{ a.n < workload.most }}" }] }
    """
    assert report(body) == []


def test_order_is_not_judged_while_an_arc_leads_nowhere() -> None:
    body = """\
    workflow:
      - { step: a, tool: { kind: noop }, next: bb }
      - { step: b, tool: { kind: noop, message: "{{ c.x }}" }, next: c }
      - { step: c, tool: { kind: noop, message: "{{ a.x }}" } }
    """
    assert report(body) == [("NOE201", "bb")]


def test_a_jump_back_makes_later_tasks_readable() -> None:
    body = """\
    workload: { most: 3 }
    workflow:
      - step: only
        tool:
          - fetch: { kind: noop, message: "{{ count.n }} {{ _prev }}" }
          - count:
              kind: noop
              result: { n: 1 }
              spec:
                policy:
                  rules:
                    - when: "{{ outcome.result.n < workload.most }}"
                      then: { do: jump, to: fetch }
                    - else:
                        then: { do: continue }
          - show: { kind: noop, message: "{{ fetch }} {{ _prev.n }}" }
    """
    assert report(body) == []
    assert report(body.replace("do: jump, to: fetch", "do: break")) == [("NOE314", "count"), ("NOE315", "_prev")]


def test_a_task_may_read_its_own_label_in_its_rules() -> None:
    assert report(rule("work.data.more")) == []


# Outcomes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "when",
    [
        "outcome.http.headers['retry-after'] == '1'", "outcome.items | length > 3",
        "output.data.data.items == 1 or output.data.items == 2", "outcome.results[0] == 1",
        "outcome.errors | length > 0", "outcome.stats.n == 1", "outcome.error.details.anything == 1",
        "outcome.meta.custom == 1", "outcome.error.retry_after == 1",
    ],
)  # fmt: skip
def test_keys_of_an_answer_are_fine(when: str) -> None:
    assert report(rule(when), only="NOE3") == []


@pytest.mark.parametrize(
    ("when", "wanted"),
    [
        ("outcome.pg.code == '1'", "pg"), ("outcome.http.code == 429", "code"), ("outcome.error.type == 'x'", "type"),
        ("output.error['retriable']", "'retriable'"), ("outcome.stauts == 'ok'", "stauts"),
        ("outcome.meta.atempt > 1", "atempt"),
    ],
)  # fmt: skip
def test_fields_that_an_http_outcome_never_has(when: str, wanted: str) -> None:
    assert report(rule(when), only="NOE3") == [("NOE316", wanted)]


def test_a_result_of_known_form_has_no_other_fields() -> None:
    query = "auth: pg\n              query: SELECT 1"
    assert report(rule("outcome.result.rows[0].x == 1 and outcome.command_2.row_count == 1", "postgres", query)) == []
    assert report(rule("outcome.result.rowcount == 1", "postgres", query)) == [("NOE316", "rowcount")]
    assert report(rule("outcome.affected == 1", "postgres", query)) == [("NOE316", "affected")]


def test_a_call_of_the_workbook_has_the_outcome_of_what_it_calls() -> None:
    book = '    workbook: { ask: { kind: http, url: "{{ workload.api }}" } }\n'
    assert report(book + rule("outcome.http.status == 404", "workbook", "task: ask")) == []
    assert report(book + rule("outcome.pg.code == '1'", "workbook", "task: ask")) == [("NOE316", "pg")]


def test_in_the_set_of_a_task_output_is_the_result() -> None:
    body = task(
        'url: "{{ workload.api }}", set: { ctx.a: "{{ output.status }}", ctx.b: "{{ output.error.type }}" }', "http"
    )
    assert report(body) == []


def test_selected_parts_of_a_stored_result_are_fields() -> None:
    body = """\
    workflow:
      - step: read
        tool:
          kind: postgres
          auth: pg
          query: SELECT 1
          output: { output_select: [{ path: "$.rows[0].id", as: first_id }] }
        next: show
      - { step: show, tool: { kind: noop, message: "{{ read.first_id }} {{ read._ref }} {{ read.data.rows }}" } }
    """
    assert report(body) == []


def test_results_of_free_form_are_not_judged() -> None:
    body = """\
    workflow:
      - step: a
        tool:
          - code: { kind: python, code: "result = {}" }
        next: b
      - { step: b, tool: { kind: noop, message: "{{ a.anything.at.all }} {{ a.code.too }} {{ a.data.x }}" } }
    """
    assert report(body) == []


# Comparisons and conditions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "when",
    [
        "outcome.status != 'error'", "outcome.status in ['ok', 'error']",
        "outcome.http.status == 429 or outcome.http.status >= 500", "outcome.error.kind not in ['auth', 'schema']",
        "outcome.error.kind == none", "outcome.error.retryable == true", "outcome.error.code == 'HTTP_418'",
        "outcome.result.status == 'done'",
    ],
)  # fmt: skip
def test_comparisons_with_values_that_occur(when: str) -> None:
    assert report(rule(when), only="NOE3") == []


@pytest.mark.parametrize(
    ("when", "wanted"),
    [
        ("outcome.status == 'failed'", "failed"), ("'success' == outcome.status", "success"),
        ("outcome.status in ['ok', 'done']", "done"), ("outcome.status is eq 'okay'", "okay"),
        ("outcome.http.status in [429, '503']", "503"), ("outcome.error.kind == 'timed_out'", "timed_out"),
        ("outcome.error.retryable == 'true'", "true"),
    ],
)  # fmt: skip
def test_comparisons_with_values_that_never_occur(when: str, wanted: str) -> None:
    found = report(rule(when), only="NOE3")
    assert found == [("NOE318", wanted)]


def test_a_gate_is_tried_after_many_events() -> None:
    assert report(gate("event.name == 'ctx.patched' or done('left')")) == []
    assert report(gate("event.name == 'signal.recieved' or done('left')")) == [("NOE318", "signal.recieved")]


@pytest.mark.parametrize(
    "when", ["true", "yes", "'true'", '"{{ true }}"', '"{{ now() > 1 }}"', '"{{ first.a or first.b }}"']
)
def test_conditions_that_say_what_they_mean(when: str) -> None:
    assert report(condition(when), only="NOE3") == []


@pytest.mark.parametrize(
    ("when", "wanted"),
    [
        ('"{{ false }}"', ("NOE324", "false")), ("\"{{ 'a' == 'b' }}\"", ("NOE324", "'a' == 'b'")),
        ("\"{{ first.a == 'x' or 'y' }}\"", ("NOE324", "first.a == 'x' or 'y'")),
        ('"{{ 1 < 2 and not false }}"', ("NOE324", "1 < 2 and not false")),
        ("first.a > 1", ("NOE325", "first.a > 1")),
        ("\"event.name == 'step.done'\"", ("NOE325", "\"event.name == 'step.done'\"")), ('""', ("NOE325", '""')),
        ("\"{{ first.a }} == 'x'\"", ("NOE326", "== 'x'")), ('"not {{ first.a }}"', ("NOE326", "not")),
        ('"{{ first.a }} and {{ first.b }}"', ("NOE326", "and")),
    ],
)  # fmt: skip
def test_conditions_that_decide_nothing(when: str, wanted: tuple[str, str]) -> None:
    assert report(condition(when), only="NOE3") == [wanted]


# Keys ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("workload.mdoe", [("NOE319", "mdoe")]), ("workload['mdoe']", [("NOE319", "'mdoe'")]),
        ("workload.db.hots", [("NOE319", "hots")]), ("db.hots", [("NOE319", "hots")]), ("workload.db.password", []),
        ("workload.mdoe | default('')", []), ("workload.get('mdoe')", []), ("workload[workload.mode]", []),
        ("workload.mode.x", []),
    ],
)  # fmt: skip
def test_keys_of_the_workload(expression: str, wanted: list[tuple[str, str]]) -> None:
    assert report(task(f'message: "{{{{ {expression} }}}}"')) == wanted


def test_a_schema_declares_keys_too_and_no_workload_declares_all() -> None:
    schema = "    executor: { spec: { workload_schema: { properties: { day: { type: string } } } } }\n"
    body = """\
    workflow:
      - { step: only, tool: { kind: noop, message: "{{ workload.day }} {{ day }}" } }
    """
    assert report(schema + body) == []
    assert report(body.replace(" {{ day }}", "")) == []


def test_arguments_are_known_by_the_arcs() -> None:
    body = """\
    workload: { a: 1 }
    workflow:
      - step: first
        tool: { kind: noop, message: "{{ args.a }}" }
        next: { arcs: [{ step: second, args: { b: 1 } }] }
      - step: second
        input: { c: 1 }
        tool:
          - one: { kind: noop, args: { d: 1 }, message: "{{ args.b }}{{ input.b }}{{ input.c }}{{ input.d }}" }
          - two: { kind: noop, message: "{{ input.e }}{{ args.x | default(1) }}" }
    """
    assert report(body) == [("NOE320", "a"), ("NOE320", "e")]
    assert "`workload.a`" in diagnostics(body)[0].fix


def test_state_from_outside_is_fine_and_a_slip_is_not() -> None:
    body = """\
    workflow:
      - step: first
        tool: {{ kind: noop }}
        set: {{ ctx.a_done: true, ctx.page_1: 1, ctx.total: 2 }}
        next: second
      - {{ step: second, tool: {{ kind: noop, message: "{{{{ ctx.{0} }}}}" }} }}
    """
    for fine in ("a_done", "b_done", "page_2", "approved", "signals.go", "total", "totl | default(0)"):
        assert report(body.format(fine)) == [], fine
    for slip in ("toatl", "totals", "a_don"):
        assert report(body.format(slip)) == [("NOE321", slip)], slip


def test_keys_of_the_iteration_are_the_loops_own() -> None:
    body = """\
    workload: {{ rows: [1] }}
    workflow:
      - step: each
        loop: {{ in: "{{{{ workload.rows }}}}", iterator: row }}
        tool: {{ kind: noop, message: "{{{{ iter.{0} }}}}", set: {{ iter.made: 1 }} }}
    """
    for fine in ("row", "row.name", "index", "_index", "_first", "total", "parent.x", "made", "gone | default(1)"):
        assert report(body.format(fine)) == [], fine
    assert report(body.format("name")) == [("NOE322", "name")]


def test_scratch_values_belong_to_the_step_that_writes_them() -> None:
    body = """\
    workflow:
      - step: first
        tool: { kind: noop, set: { step.a: 1 } }
        next: { arcs: [{ step: second, when: "{{ step.a == 1 }}" }] }
      - step: second
        tool: { kind: noop, message: "{{ step.a }}" }
    """
    assert report(body) == [("NOE323", "a")]


def test_older_forms_bring_their_names() -> None:
    body = """\
    workload: { users: [1] }
    workflow:
      - step: each
        loop: { collection: "{{ workload.users }}", element: user }
        tool: { kind: noop, message: "{{ user.name }}" }
    """
    assert not report(body, only="NOE3")


def test_a_policy_that_tasks_share_may_ask_for_the_parts_of_all_of_them() -> None:
    body = """\
    workload: { api: "http://127.0.0.1" }
    workflow:
      - step: only
        tool:
          - ask:
              kind: http
              url: "{{ workload.api }}"
              spec:
                policy: &patient
                  rules:
                    - when: "{{ outcome.http.status == 503 or outcome.pg.code == '40001' or outcome.py.exception_type == 'KeyError' }}"
                      then: { do: retry, attempts: 3 }
                    - when: "{{ outcome.status == 'error' }}"
                      then: { do: fail }
                    - else: { then: { do: continue } }
          - store: { kind: postgres, auth: pg, query: SELECT 1, spec: { policy: *patient } }
          - count: { kind: python, code: result = 1, spec: { policy: *patient } }
    """
    assert report(body) == []
