"""Completion in templates: names, keys, filters, tests, functions, strings."""

from __future__ import annotations

import pytest

from noetl.authoring.completion.complete import complete
from noetl.expr import FILTERS
from tests.unit.authoring.editing import HEAD, offered, typed

TOOL = f"{HEAD}  - step: store\n    tool:\n      kind: http\n      url: "
ARC = f"{HEAD}  - step: store\n    tool: {{ kind: http, url: x }}\n    next:\n      arcs:\n        - step: fetch\n          when: "
IN_LOOP = HEAD.replace("ctx.total: ", 'ctx.other: "{{ ‸ }}", ctx.total: ', 1)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ('"{{ workload.‸ }}"', ["cities", "nested", "url"]),
        ('"{{ workload.nested.‸ }}"', ["deep"]),
        ('"{{ workload.cities[0].‸ }}"', ["name", "lat"]),
        ("\"{{ workload['‸'] }}\"", ["cities", "nested", "url"]),
        ('"{{ ctx.‸ }}"', ["signals", "total"]),
        ('"{{ vars.‸ }}"', ["signals", "total"]),
        ('"{{ args.‸ }}"', ["rows"]),
        ('"{{ fetch.‸ }}"', ["results", "stats"]),
        ('"{{ fetch.stats.‸ }}"', ["total", "succeeded", "failed", "skipped"]),
        ('"{{ keychain.‸ }}"', ["pg_main"]),
        ('"{{ job.‸ }}"', ["uuid", "execution_id"]),
        ('"{{ ctx.total.‸ }}"', []),
        ('"{{ nowhere.‸ }}"', []),
        ("\"{{ done('‸') }}\"", ["fetch", "store"]),
        ("\"{{ now() if ok('‸", ["fetch", "store"]),
        ('"{% ‸ %}"', ["if", "elif", "else", "endif", "for", "endfor", "set"]),
        ("{{ ctx.‸ }}", ["signals", "total"]),
        ('"{{ ctx.‸', ["signals", "total"]),
        ("'{{ ctx.‸ }} and ''more'''", ["signals", "total"]),
        ("|\n        first {{ workload.url }}\n        then {{ ctx.‸ }}\n", ["signals", "total"]),
        (">-\n        first {{ workload.url }}\n        then {{ ctx.‸\n", ["signals", "total"]),
    ],
)
def test_keys_and_texts(template: str, expected: list[str]) -> None:
    assert offered(f"{TOOL}{template}\n") == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (
            "\"{{ event.name == '‸' }}\"",
            [
                "step.done",
                "step.failed",
                "loop.done",
                "step.exit",
                "call.done",
                "step.finished",
                "action_completed",
                "result",
                "call.error",
                "action_error",
                "loop.finished",
                "loop_completed",
            ],
        ),
        ("\"{{ outcome.status != '‸' }}\"", ["ok", "error"]),
        ('"{{ event.‸ }}"', ["name", "payload"]),
        (
            '"{{ outcome.error.‸ }}"',
            ["kind", "class", "code", "message", "retryable", "retry_after", "details", "where"],
        ),
        ('"{{ outcome.http.‸ }}"', ["status", "headers"]),
    ],
)
def test_conditions_of_arcs(template: str, expected: list[str]) -> None:
    assert offered(f"{ARC}{template}\n") == expected


def test_error_kinds_are_offered_in_a_list_too() -> None:
    assert "rate_limit" in offered(f"{ARC}\"{{{{ outcome.error.kind in ['timeout', '‸'] }}}}\"\n")


def test_names_follow_the_role_of_the_template() -> None:
    task, arc = set(offered(f'{TOOL}"{{{{ ‸ }}}}"\n')), set(offered(f'{ARC}"{{{{ ‸ }}}}"\n'))
    assert {"workload", "ctx", "keychain", "_prev", "_attempt", "fetch", "rows", "cities", "total", "now"} <= task
    assert not {"outcome", "event", "city"} & task
    assert {"outcome", "event", "ctx", "store"} <= arc
    assert not {"keychain", "_prev"} & arc


def test_inside_of_a_loop_there_are_the_item_and_the_earlier_tasks() -> None:
    assert {"city", "iter", "init", "get", "page", "loop_index"} <= set(offered(IN_LOOP))
    iteration = offered(IN_LOOP.replace("‸", "iter.‸"))
    assert iteration[:2] == ["city", "page"]
    assert {"index", "total", "first", "last", "parent"} <= set(iteration)
    assert offered(IN_LOOP.replace("‸", "iter.city.‸")) == ["name", "lat"]
    assert offered(IN_LOOP.replace("‸", "city.‸")) == ["name", "lat"]


def test_in_the_rules_of_a_task_the_outcome_has_what_its_kind_gives() -> None:
    rule = 'spec: { policy: { rules: [ { when: "{{ outcome.‸ }}", then: { do: fail } } ] } }'
    found = offered(f"{HEAD}  - step: store\n    tool: {{ kind: postgres, query: x, {rule} }}\n")
    assert found[:6] == ["status", "result", "data", "error", "meta", "ref"]
    assert {"pg", "rows", "row_count"} <= set(found)


def test_results_of_pipelines_have_their_labels() -> None:
    text = HEAD.replace('loop: { in: "{{ workload.cities }}", iterator: city }', "").replace(
        "/{{ iter.city.name }}", ""
    )
    body = '  - step: store\n    tool: { kind: noop, result: "{{ fetch.‸ }}" }\n'
    assert {"init", "get", "results", "status_code", "data"} <= set(offered(text + body))
    assert offered(text + body.replace("fetch.", "fetch.results.")) == ["init", "get"]
    assert "status_code" in offered(text + body.replace("fetch.", "fetch.get."))


def test_filters_and_tests() -> None:
    filters = complete(*typed(f'{TOOL}"{{{{ ctx.total | to‸ }}}}"\n')).items
    assert {item.label for item in filters} == {name for name in FILTERS if name.isidentifier()}
    assert all(item.detail and item.text for item in filters)
    assert {"defined", "none", "mapping"} <= set(offered(f'{TOOL}"{{{{ ctx.total is not ‸ }}}}"\n'))


def test_only_the_word_at_the_cursor_is_replaced() -> None:
    reading, cursor = typed(f'{TOOL}"{{{{ workload.nes‸ }}}}"\n')
    assert reading.text[complete(reading, cursor).start : cursor] == "nes"


def test_code_of_other_languages_is_no_template() -> None:
    assert (
        offered(f"{HEAD}  - step: store\n    tool:\n      kind: python\n      code: |\n        x = '{{{{ ctx.‸ }}}}'\n")
        == []
    )
