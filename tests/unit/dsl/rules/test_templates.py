"""Rules about templates: exact position, message, and no false positives."""

from __future__ import annotations

import pytest

from tests.unit.dsl.rules.samples import condition, diagnostics, message, report, rule, task

# Syntax -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    [
        "message: a {{ workload.mode | }} b",
        "message: 'it''s {{ workload.mode | }}'",
        'message: "\\u00bb\\t{{ workload.mode | }}"',
    ],
)
def test_a_syntax_error_is_found_behind_quotes_and_escapes(written: str) -> None:
    body = f"workload: {{ mode: full }}\nworkflow:\n  - step: only\n    tool:\n      kind: noop\n      {written}\n"
    (found,) = diagnostics(body)
    assert (found.code, found.line) == ("NOE301", 9)
    assert f"      {written}"[found.column - 1 :].startswith("}}")


@pytest.mark.parametrize("style", ["|", ">", "|-", ">-", "|2"])
def test_a_syntax_error_is_found_in_block_scalars(style: str) -> None:
    body = f"""\
    workload: {{ mode: full }}
    workflow:
      - step: only
        tool:
          kind: noop
          message: {style}
            first line

            second {{{{ workload.mode === 'x' }}}}
    """
    (found,) = diagnostics(body)
    assert (found.code, found.line, found.column) == ("NOE301", 12, 33)


def test_a_broken_template_gives_nothing_but_its_syntax_error() -> None:
    assert [code for code, _ in report(task('message: "{{ unknown | nofilter( }}"'))] == ["NOE301"]


def test_a_broken_condition_starts_no_cascade() -> None:
    assert [code for code, _ in report(condition("\"{{ event.name == 'step.done' \""))] == ["NOE301"]


def test_code_of_python_tasks_is_no_template() -> None:
    assert report(task("code: 'result = f\"{{{1}}}\"'", "python")) == []


# Names --------------------------------------------------------------------------------------------------------------


def test_an_unknown_name_is_told_once_for_each_template() -> None:
    assert report(task('message: "{{ nothing + nothing }}", timeout: "{{ nothing }}"')) == [
        ("NOE302", "nothing"),
        ("NOE302", "nothing"),
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "x | default(1)", "x is defined", "x if x is defined else 1", "x.y.z | default('')", "x or workload.mode",
        "[1] | map('string') | list",
    ],
)  # fmt: skip
def test_guarded_names_are_fine(expression: str) -> None:
    assert report(task(f'message: "{{{{ {expression} }}}}"')) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mdoe", "Did you mean 'mode'?"), ("now", "`now` is a function: write `now()`"), ("null", "Write `none`"),
        ("response", "`outcome.result`"), ("loop", "`iter.index`"), ("env", "cannot read the environment"),
        ("zzz", "Declare 'zzz' under `workload`"),
    ],
)  # fmt: skip
def test_an_unknown_name_comes_with_advice(name: str, words: str) -> None:
    assert words in message(task(f'message: "{{{{ {name} }}}}"'))


def test_an_unknown_name_in_the_workload_is_not_sent_to_scopes_that_are_not_there() -> None:
    found = message('workload: { a: "{{ zzz }}" }\nworkflow: [{ step: only, tool: { kind: noop } }]\n')
    assert "can only read built-ins" in found
    assert "ctx.zzz" not in found


def test_without_a_workload_an_unknown_name_is_a_warning() -> None:
    body = """\
    workflow:
      - { step: only, tool: { kind: noop, message: "{{ customer }}" } }
    """
    assert [found.severity for found in diagnostics(body)] == ["warning"]
    assert [found.severity for found in diagnostics(task('message: "{{ customer }}"'))] == ["error"]


def test_names_of_the_template_itself_are_known() -> None:
    text = "{% set a = 1 %}{% for b, c in workload.db.items() %}{{ a }}{{ b }}{{ c }}{{ loop.index }}{% endfor %}"
    assert report(task(f'message: "{text}"')) == []


def test_every_bare_name_of_the_language_resolves() -> None:
    body = """\
    workload: { rows: [1] }
    executor: { spec: { final_step: last } }
    workflow:
      - step: first
        tool: { kind: noop, result: 1 }
        set: { ctx.kept: "{{ first }}", other: 2 }
        next: { arcs: [{ step: each, args: { bound: 3 } }] }
      - step: each
        loop: { in: "{{ rows }}", iterator: row }
        input: { given: "{{ bound }}" }
        tool:
          - one: { kind: noop, set: { iter.made: 1 } }
          - two:
              kind: noop
              args: { own: 1 }
              message: >-
                {{ bound }}{{ given }}{{ own }}{{ kept }}{{ other }}{{ row }}{{ made }}{{ one }}{{ first }}{{ rows }}
                {{ loop_index }}{{ _index }}{{ index }}{{ total }}{{ signals | default({}) }}{{ execution_id }}
      - step: last
        tool: { kind: noop, message: "{{ counts }} {{ failures }} {{ results }} {{ args.results.each }}" }
    """
    assert report(body) == []


def test_an_input_that_is_being_made_is_not_its_own_source() -> None:
    body = """\
    workload: { rows: [1] }
    workflow:
      - step: only
        tool:
          - work: { kind: python, args: { rows: "{{ rows }}", other: "{{ thing }}", thing: 1 }, code: result = rows }
          - show: { kind: noop, args: { lost: "{{ lost }}" } }
    """
    assert report(body) == [("NOE302", "lost")]


# Filters, tests, functions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("workload.mode | uper", ("NOE303", "uper")), ("workload.rows | map('uper') | list", ("NOE303", "'uper'")),
        ("workload.mode is defned", ("NOE304", "defned")), ("uuid()", ("NOE305", "uuid")),
        ("workload.mode.uper()", ("NOE306", "uper")), ("workload.mode.__class__", ("NOE308", "__class__")),
    ],
)  # fmt: skip
def test_what_cannot_be_called_is_underlined(expression: str, wanted: tuple[str, str]) -> None:
    assert report(task(f'message: "{{{{ {expression} }}}}"')) == [wanted]


def test_all_problems_of_one_template_are_told() -> None:
    found = report(task('message: "{{ (a | one) ~ (b | two) ~ c() }}"'))
    assert sorted(code for code, _ in found) == ["NOE302", "NOE302", "NOE303", "NOE303", "NOE305"]


# Scopes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "words"),
    [("outcome.result", "`args: { value: … }`"), ("output.data", "by its name"), ("event.name", "its own `outcome`")],
)
def test_a_misplaced_scope_in_a_task_says_what_to_read(scope: str, words: str) -> None:
    assert words in message(task(f'message: "{{{{ {scope} }}}}"'))


def test_a_task_behind_another_is_told_to_read_what_came_before() -> None:
    body = """\
    workflow:
      - step: only
        tool:
          - first: { kind: noop }
          - second: { kind: noop, message: "{{ outcome.result }}" }
    """
    assert "`_prev`" in message(body)


def test_a_scope_that_never_exists_here_may_be_guarded() -> None:
    assert report(task('message: "{{ outcome.result | default(1) }}"')) == []


@pytest.mark.parametrize("place", ["admit", "loop", "set", "arc", "workload"])
def test_credentials_stay_off_the_server(place: str) -> None:
    secret = '"{{ keychain.a.b }}"'
    lines = {
        "admit": f"spec: {{ policy: {{ admit: {{ rules: [{{ when: {secret}, then: {{ allow: true }} }}] }} }} }}",
        "loop": f"loop: {{ in: {secret}, iterator: row }}",
        "set": f"set: {{ ctx.a: {secret} }}",
        "arc": f"next: {{ arcs: [{{ step: second, args: {{ a: {secret} }} }}] }}",
        "workload": "desc: none",
    }
    workload = f"    workload: {{ a: {secret} }}\n" if place == "workload" else ""
    body = f"""{workload}\
    keychain: [{{ name: a, kind: token }}]
    workflow:
      - step: first
        tool: {{ kind: noop }}
        {lines[place]}
    """
    if place == "arc":
        body += "  - { step: second, tool: { kind: noop } }\n    "
    assert report(body, only="NOE3") == [("NOE310", "keychain")]


def test_credentials_may_be_read_in_tasks_but_not_kept() -> None:
    assert report("    keychain: [{ name: a, kind: token }]\n" + task('message: "{{ keychain.a.b }}"')) == []
    kept = task('set: { ctx.a: "{{ keychain.a.b }}", step.b: "{{ keychain.a.b }}" }')
    assert report("    keychain: [{ name: a, kind: token }]\n" + kept) == [("NOE311", "keychain")]


def test_iteration_of_the_caller_is_known_to_children() -> None:
    assert report(task('message: "{{ iter.parent.index }} {{ iter.parent.parent.row }}"')) == []
    assert report(condition('"{{ iter.parent.index == 0 }}"')) == []
    assert report(task('message: "{{ iter.index }}"')) == [("NOE312", "iter")]


# Braces -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        task('message: "${{ workload.mode }}"'),
        task('result: { n: "${{ workload.db.port }}" }'),
        task('url: "http://127.0.0.1/${{ workload.mode }}"', "http"),
        task('command: "echo ${{ workload.mode }} now"', "shell"),
        task("message: \"${{ workload.mode | default('{') }}\""),
    ],
)
def test_a_dollar_before_braces_is_noticed(body: str) -> None:
    assert report(body, only="NOE327") == [("NOE327", "${{")]


@pytest.mark.parametrize(
    "text",
    [
        "It costs ${{ workload.db.port }} per day.",
        "US${{ workload.db.port }}",
        "{{ '$' ~ workload.db.port }}",
        "{% raw %}${{ secrets.TOKEN }}{% endraw %}",
        "{# ${{ workload.mode }} #}a {{ workload.mode }}",
        "$$ {{ workload.mode }} $$",
    ],
)
def test_a_price_is_no_template_of_another_tool(text: str) -> None:
    assert report(task(f'message: "{text}"')) == []


def test_a_dollar_quote_of_sql_is_left_alone() -> None:
    body = task('auth: pg, query: "DO $${{ workload.mode | raw }}$$"', "postgres")
    assert report(body, only="NOE327") == []


@pytest.mark.parametrize(
    "text",
    ["workload.mode }}", "{ workload.mode }}", "{{ workload.mode }} and workload.api }}", "{ a: { b } } }}"],
)
def test_a_stray_end_of_a_template_is_noticed(text: str) -> None:
    assert report(task(f'message: "{text}"')) == [("NOE328", "}}")]


def test_a_condition_with_a_stray_end_gets_one_message() -> None:
    assert report(condition('"workload.mode }}"')) == [("NOE328", "}}")]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": 1}}',
        '{"a": {"b": {{ workload.db.port }}}}',
        "{% raw %}}}{% endraw %} {{ workload.mode }}",
        "{{ '{{' }} workload.mode }}",
        "{% if workload.mode %}}}{% endif %}",
        "{# }} #}{{ workload.mode }}",
        "{{ {'a': {'b': 1}} | tojson }}",
    ],
)
def test_braces_of_data_are_no_stray_end(text: str) -> None:
    assert report(task(f"message: '{text.replace(chr(39), chr(39) * 2)}'")) == []


# Fields of HTTP results ---------------------------------------------------------------------------------------------


def after_http(read: str, tool: str = '{ kind: http, url: "http://127.0.0.1" }') -> str:
    return f"""\
    workflow:
      - step: fetch
        tool: {tool}
        next: show
      - step: show
        tool: {{ kind: noop, message: "{{{{ {read} }}}}" }}
    """


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("stauts", "status"),
        ("bdy", "body"),
        ("hedaers", "headers"),
        ("status_cod", "status_code"),
        ("elapsd", "elapsed"),
    ],
)
def test_a_misspelled_field_of_an_http_result_is_noticed(key: str, meant: str) -> None:
    (found,) = diagnostics(after_http(f"fetch.{key}"))
    assert (found.code, found.severity) == ("NOE317", "warning")
    assert f"Did you mean '{meant}'?" in found.message
    assert f"`fetch.body.{key}`" in found.fix


@pytest.mark.parametrize(
    "read",
    [
        "fetch.status", "fetch.body.stauts", "fetch.data.stauts", "fetch.data.data.stauts", "fetch.items", "fetch.state",
        "fetch.stats", "fetch.urls", "fetch.date", "fetch.stauts | default('')", "fetch['status']", "fetch.results.x",
    ],
)  # fmt: skip
def test_keys_of_the_body_are_not_judged(read: str) -> None:
    assert report(after_http(read)) == []


def test_a_field_of_an_http_result_is_checked_in_pipelines_and_outcomes() -> None:
    pipeline = """\
    workflow:
      - step: fetch
        tool:
          - get: { kind: http, url: "http://127.0.0.1" }
          - show: { kind: noop, message: "{{ get.stauts }} {{ _prev.hedaers }}" }
    """
    assert report(pipeline) == [("NOE317", "stauts"), ("NOE317", "hedaers")]
    assert report(rule("outcome.result.stauts == 404")) == [("NOE316", "stauts")]
    assert report(rule("output.bdy == 404")) == [("NOE316", "bdy")]
    assert report(rule("outcome.result.data.stauts == 404")) == []


def test_a_python_result_may_have_any_key() -> None:
    assert report(after_http("fetch.stauts", '{ kind: python, code: "result = {}" }')) == []
