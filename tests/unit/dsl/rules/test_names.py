"""Rules about names: position, suggestion, and no false positives."""

from __future__ import annotations

import pytest

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.shape_findings import obscured
from noetl.dsl.reading.parse import parse
from tests.unit.dsl.rules.samples import HEAD, KINDS, diagnostics, message, report


def test_an_unknown_target_is_underlined_and_the_nearest_step_suggested() -> None:
    body = """\
    workflow:
      - { step: fetch, tool: { kind: noop }, next: { arcs: [{ step: 'stroe', when: "{{ fetch.ok }}" }] } }
      - { step: store, tool: { kind: noop } }
    """
    assert report(body) == [("NOE201", "'stroe'")]
    assert "Did you mean 'store'?" in message(body)


@pytest.mark.parametrize("next_", ["nowhere", "[nowhere]", "{ arcs: [{ step: nowhere }] }", "[{ step: nowhere }]"])
def test_every_form_of_next_is_looked_at(next_: str) -> None:
    body = f"""\
    workflow:
      - {{ step: only, tool: {{ kind: noop }}, next: {next_} }}
    """
    assert report(body) == [("NOE201", "nowhere")]


def test_a_step_under_a_misspelled_key_exists_for_its_author() -> None:
    body = """\
    workflow:
      - { step: fetch, tool: { kind: noop }, next: store }
      - stepp: store
        tool: { kind: noop }
    """
    assert not [code for code, _ in report(body) if code.startswith(("NOE2", "NOE4"))]


def test_words_in_misshapen_places_are_gathered() -> None:
    text = (
        HEAD + "workflow:\n  - step: a\n    setz: { ctx.total: 1 }\n    nxt: [b, {step: c}]\n    tool: { kind: noop }\n"
    )
    words = obscured(CheckContext(parse(text, "x.yaml"), KINDS).shape)
    assert {"ctx", "total", "b", "step", "c"} <= words
    assert "a" not in words


def test_a_key_written_under_a_misspelled_set_is_not_told_again() -> None:
    body = """\
    workflow:
      - step: count
        tool: { kind: noop, result: 1 }
        sett: { ctx.total: "{{ count }}" }
        next: show
      - step: show
        tool: { kind: noop, message: "{{ total }} {{ ctx.total }}" }
    """
    assert [code for code, _ in report(body)] == ["NOE101"]


@pytest.mark.parametrize(
    ("to", "wanted"),
    [
        ("first", []), ("previous", []), ("second", []), ("frist", [("NOE202", "frist")]),
        ("other", [("NOE202", "other")]),
    ],
)  # fmt: skip
def test_a_jump_goes_to_a_task_of_its_own_pipeline(to: str, wanted: list[tuple[str, str]]) -> None:
    body = f"""\
    workload: {{ more: true }}
    workflow:
      - step: work
        tool:
          - first: {{ kind: noop }}
          - second:
              kind: noop
              spec:
                policy:
                  rules:
                    - when: "{{{{ workload.more }}}}"
                      then: {{ do: jump, to: {to} }}
                    - else:
                        then: {{ do: break }}
        next: after
      - step: after
        tool:
          - other: {{ kind: noop }}
    """
    assert [found for found in report(body) if found.code < "NOE4"] == wanted


def test_previous_of_the_first_task_names_the_way_out() -> None:
    body = """\
    workload: { more: true }
    workflow:
      - step: work
        tool:
          - first:
              kind: noop
              spec:
                policy:
                  rules:
                    - when: "{{ workload.more }}"
                      then: { do: jump, to: previous }
                    - else:
                        then: { do: break }
    """
    assert report(body) == [("NOE203", "previous")]
    assert "`to: first`" in message(body)


def test_compensations_are_told_once_and_never_is_an_answer() -> None:
    body = """\
    workflow:
      - { step: a, tool: { kind: noop }, compensate: undo, next: b }
      - { step: b, tool: { kind: noop }, compensate: undo }
      - { step: undo, tool: { kind: noop } }
    """
    assert report(body) == [("NOE207", "undo")]
    assert report("    policy: { rollback: never }\n" + body) == []
    assert report("    policy: { rollback: on_fail }\n" + body) == []


def test_a_workbook_task_is_called_by_task_by_name_or_by_label() -> None:
    for call in ("{ kind: workbook, task: tidy }", "{ kind: workbook, name: tidy }"):
        assert (
            report(f"    workbook: {{ tidy: {{ kind: noop }} }}\n    workflow: [{{ step: a, tool: [{call}] }}]\n") == []
        )
    body = """\
    workbook:
      - { name: tidy, tool: { kind: noop } }
    workflow:
      - step: a
        tool:
          - tidy: { kind: workbook }
          - tdiy: { kind: workbook }
    """
    assert report(body) == [("NOE208", "tdiy")]
    assert "Did you mean 'tidy'?" in message(body)


def _child(path: str) -> str:
    return f"""\
    workflow:
      - {{ step: a, tool: {{ kind: playbook, path: {path} }} }}
    """


def test_children_are_told_only_where_the_path_is_surely_wrong() -> None:
    catalog = ("billing/invoice", "billing/report_1", "billing/report_2")
    assert report(_child("billing/invoice"), catalog) == []
    assert report(_child("only/on/a/server"), catalog) == []
    assert report(_child("billing/report_3"), catalog) == []
    assert report(_child("billing/invioce"), catalog) == [("NOE209", "billing/invioce")]
    assert report(_child("./gone.yaml"), catalog) == [("NOE209", "./gone.yaml")]
    assert report(_child("'{{ workload.child }}.yaml'"), catalog) == []


def test_without_a_catalog_nothing_is_known_of_children() -> None:
    assert report(_child("billing/invioce")) == []
    assert report(_child("./gone.yaml")) == []


@pytest.mark.parametrize("name", ["ctx", "input", "_prev", "index", "total", "loop_index", "fetch", "list"])
def test_iterators_that_hide_something_are_told(name: str) -> None:
    body = f"""\
    workload: {{ rows: [1] }}
    workflow:
      - {{ step: list, tool: {{ kind: noop, result: [1] }}, next: work }}
      - step: work
        loop: {{ in: "{{{{ workload.rows }}}}", iterator: {name} }}
        tool:
          - fetch: {{ kind: noop }}
    """
    assert report(body) == [("NOE210", name)]


@pytest.mark.parametrize("name", ["row", "rows", "now", "length", "items", "order"])
def test_other_iterators_are_fine(name: str) -> None:
    body = f"""\
    workload: {{ rows: [1] }}
    workflow:
      - step: work
        loop: {{ in: "{{{{ workload.rows }}}}", iterator: {name} }}
        tool: {{ kind: noop, message: "{{{{ iter.{name} }}}} {{{{ {name} }}}}" }}
    """
    assert report(body) == []


def test_keys_of_the_workload_may_have_the_names_of_scopes() -> None:
    body = """\
    workload: { input: a, data: b, event: c, step: d, output: e }
    workflow:
      - { step: show, tool: { kind: noop, message: "{{ workload.input }} {{ data }} {{ event }} {{ output }}" } }
    """
    assert report(body) == []


def test_a_state_key_named_like_a_step_is_told_only_when_that_hides_a_read() -> None:
    body = """\
    workload: {{ api: "http://127.0.0.1" }}
    workflow:
      - step: order
        tool: {{ kind: http, url: "{{{{ workload.api }}}}" }}
        set: {{ ctx.order: "{{{{ order.data.id }}}}" }}
        next: ship
      - {{ step: ship, tool: {{ kind: noop, message: "{{{{ {0} }}}}" }} }}
    """
    assert report(body.format("ctx.order")) == []
    assert report(body.format("order.data.street")) == [("NOE212", "ctx.order")]
    assert report(body.format("order.street").replace("order.data.id", "order.data")) == []


def test_credentials_are_a_hint_and_only_where_some_are_declared() -> None:
    work = """\
    workflow:
      - step: a
        loop: { cursor: { kind: postgres, auth: pg_claim, claim: SELECT 1, key: id } }
        tool: { kind: postgres, auth: pg_mian, query: SELECT 1 }
    """
    assert report(work) == []
    keychain = "    keychain: [{ name: pg_main, kind: postgres, credential: stored }, pg_claim]\n"
    assert report(keychain + work) == [("NOE213", "pg_mian")]
    assert [found.severity for found in diagnostics(keychain + work)] == ["hint"]
    for name in ("pg_main", "stored", "'{{ workload.auth }}'", "{ source: pg_main, target: other }"):
        assert report(keychain + work.replace("pg_mian", name)) == [], name


def test_keychain_reads_are_told_where_a_keychain_is_declared() -> None:
    work = """\
    workflow:
      - { step: a, tool: { kind: noop, message: "{{ keychain.crm.token }} {{ keychain.cmr.token | default('') }}" } }
    """
    assert report(work) == []
    assert report("    keychain: { crm: stored_crm }\n" + work) == []
    assert report("    keychain: { other: stored }\n" + work) == [("NOE214", "crm")]


def test_the_edge_of_a_step_is_one_of_its_own_arcs() -> None:
    body = """\
    workflow:
      - step: a
        spec: { on_step_fail: "route_edge:failed" }
        tool: { kind: noop }
        next: { arcs: [{ step: b }] }
      - step: b
        tool: { kind: noop }
        next: { arcs: [{ step: c }, { step: d, label: failed, when: "{{ event.name == 'step.failed' }}" }] }
      - { step: c, tool: { kind: noop } }
      - { step: d, tool: { kind: noop } }
    """
    assert report(body) == [("NOE215", '"route_edge:failed"')]
    moved = body.replace('        spec: { on_step_fail: "route_edge:failed" }\n', "")
    assert report('    executor: { spec: { on_step_fail: "route_edge:failed" } }\n' + moved) == []


@pytest.mark.parametrize("call", ["done('lfet')", 'ok("lfet")', "fail( 'lfet' )"])
def test_functions_that_ask_for_a_step_are_looked_at(call: str) -> None:
    body = f"""\
    workflow:
      - step: left
        tool: {{ kind: noop }}
        next:
          arcs:
            - step: right
              when: >-
                {{{{ {call} }}}}
            - step: rest
      - {{ step: right, tool: {{ kind: noop }} }}
      - {{ step: rest, tool: {{ kind: noop }} }}
    """
    assert report(body) == [("NOE216", "lfet")]
    assert report(body.replace("lfet", "left")) == []


def test_methods_and_longer_names_are_no_questions_about_steps() -> None:
    body = """\
    workload: { text: a }
    workflow:
      - { step: a, tool: { kind: noop, message: "{{ workload.text | default(\\"not done('x')\\") }}" } }
    """
    found = [code for code, _ in report(body.replace("not done", "undone"))]
    assert found == []


@pytest.mark.parametrize("key", ["ctx.seen", "seen", "vars.seen"])
def test_reducers_are_matched_in_every_spelling(key: str) -> None:
    body = f"""\
    workload: {{ rows: [1] }}
    workflow:
      - step: work
        loop:
          in: "{{{{ workload.rows }}}}"
          iterator: row
          spec: {{ mode: parallel, reduce: {{ {key}: append }} }}
        tool: {{ kind: noop, set_ctx: {{ seen: "{{{{ iter.row }}}}" }} }}
    """
    assert report(body) == []


def test_steps_and_tasks_that_share_a_name_start_no_cascade() -> None:
    body = """\
    workflow:
      - step: twin
        tool:
          - one: { kind: noop, result: { n: 1 } }
          - two: { kind: noop, message: "{{ one.n }} {{ three.n }}" }
        next: twin
      - step: twin
        tool:
          - three: { kind: postgres, auth: pg, query: SELECT 1 }
          - three: { kind: noop, message: "{{ three.n }} {{ one.n }} {{ twin.x }}" }
    """
    assert [code for code, _ in report(body)] == ["NOE106", "NOE107"]


def test_a_step_that_is_missing_is_told_where_the_arc_is() -> None:
    body = """\
    workload: { a: 1 }
    workflow:
      - { step: first, tool: { kind: noop }, next: store }
      - { step: stoer, tool: { kind: noop, result: { n: 1 } }, next: last }
      - step: last
        spec: { policy: { admit: { rules: [{ when: "{{ done('store') }}", then: { allow: true } }] } } }
        tool: { kind: noop, message: "{{ store.n }}" }
    """
    assert report(body) == [("NOE201", "store")]
