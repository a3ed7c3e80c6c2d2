"""Rules about tools: position, message, and no false positives."""

from __future__ import annotations

import ast

import pytest

from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.rules.tools.python_snippets import Places, Refusal, read
from noetl.dsl.rules.tools.secret_patterns import is_placeholder, known_secrets
from noetl.dsl.secret_names import is_secret_name
from noetl.dsl.validate import validate
from tests.unit.dsl.rules.samples import HEAD, KINDS, diagnostics, message, report


def task(fields: str, root: str = "") -> str:
    return f"""\
    workload: {{ x: 1, y: a, rows: [1] }}
    {root}
    workflow:
      - step: a
        tool: {{ {fields} }}
    """


def test_an_unknown_kind_is_underlined_and_starts_no_cascade() -> None:
    body = task("kind: htp, anything: 1, url: u")
    assert report(body) == [("NOE501", "htp")]
    assert "Did you mean 'http'?" in message(body)


def test_kinds_are_looked_at_in_workbooks_and_cursors() -> None:
    body = """\
    workbook: { one: { kind: shel, command: ls } }
    workflow:
      - step: a
        loop: { iterator: row, cursor: { kind: postgrs, claim: SELECT 1, key: id } }
        tool: { kind: workbook, task: one }
    """
    assert report(body) == [("NOE501", "shel"), ("NOE501", "postgrs")]


def test_a_task_without_a_kind_is_not_told_to_have_an_unknown_one() -> None:
    assert "NOE501" not in [code for code, _ in report(task("url: u"))]


def test_an_unknown_field_is_told_with_the_nearest_one() -> None:
    assert report(task("kind: http, url: u, hedders: {}")) == [("NOE502", "hedders")]
    assert "Did you mean 'headers'?" in message(task("kind: http, url: u, hedders: {}"))
    assert "method, url, params" in message(task("kind: http, url: u, zzzz: {}"))


def tolerant(body: str) -> tuple[Diagnostic, ...]:
    return validate(HEAD + body, "x.yaml", KINDS, tolerant=True)


def test_unknown_fields_are_warnings_when_tolerance_is_asked_for() -> None:
    (found,) = tolerant("workflow:\n  - step: a\n    tool: { kind: http, url: u, zzzz: 1 }\n")
    assert (found.code, found.severity) == ("NOE502", "warning")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("kind: http", "needs 'url'"),
        ("kind: python", "needs 'code' or 'code_b64' or 'script'"),
        ("kind: sleep", "needs 'seconds' or 'until'"),
        ("kind: nats, operation: kv_get, bucket: b", "with `operation: kv_get` also needs 'key'"),
        ("kind: postgres, query: SELECT 1, mode: upsert", "Or remove `mode`"),
        ("kind: artifact, action: put", "also needs 'data'"),
    ],
)
def test_missing_inputs_are_told_at_the_kind(fields: str, words: str) -> None:
    body = task(fields)
    assert report(body) == [("NOE503", fields.split(",", maxsplit=1)[0].removeprefix("kind: "))]
    assert words in message(body)


def test_inputs_under_spec_are_not_missing() -> None:
    assert report(task("kind: http, spec: { url: u }")) == []
    assert report(task("kind: http, endpoint: u")) == []


@pytest.mark.parametrize(
    ("fields", "pointed"),
    [
        ("kind: http, url: u, json: {}, form: {}", "form"),
        ("kind: http, url: u, payload: {}, json: {}", "json"),
        ("kind: shell, cmds: [ls], command: ls", "command"),
        ("kind: python, code: x = 1, spec: { code_b64: eA== }", "code_b64"),
    ],
)
def test_contradicting_inputs_are_told_at_the_last_one(fields: str, pointed: str) -> None:
    assert report(task(fields)) == [("NOE504", pointed)]


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("password", True), ("db_password", True), ("PGPASSWORD", True), ("ctx.password", True), ("x-api-key", True),
        ("apiKey", True), ("token", True), ("access_token", True), ("refresh-token", True), ("client_secret", True),
        ("Authorization", True), ("private_key", True), ("slack_token", True), ("aws_secret_access_key", True),
        ("token_url", False), ("password_field", False), ("secret_name", False), ("next_token", False),
        ("page_token", False), ("max_tokens", False), ("key", False), ("auth", False), ("secret", True),
        ("Cookie", True), ("Set-Cookie", True), ("credentials", True), ("session", True), ("sessionid", True),
        ("session_id", True), ("bearer", True), ("session_count", False), ("cookie_policy", False), ("credential", False),
        ("image_pull_secret", False), ("author", False), ("tokens", False), ("compass", False),
    ],
)  # fmt: skip
def test_names_that_hold_secrets(key: str, secret: bool) -> None:
    assert is_secret_name(key) is secret


@pytest.mark.parametrize(
    ("value", "placeholder"),
    [
        ("", True), ("***", True), ("xxxx", True), ("<token>", True), ("<your password>", True), ("${TOKEN}", True),
        ("$TOKEN", True), ("changeme", True), ("change-me-please", True), ("your-api-key", True), ("REDACTED", True),
        ("Bearer <token>", True), ("projects/a/secrets/b/versions/1", True), ("arn:aws:secretsmanager:x", True),
        ("AKIAIOSFODNN7EXAMPLE", True), ("...", True), ("env:TOKEN", True),
        ("hunter2", False), ("Bearer 12345", False), ("myPass", False), ("x1", False), ("secret", False),
    ],
)  # fmt: skip
def test_values_that_stand_for_a_secret(value: str, placeholder: bool) -> None:
    assert is_placeholder(value) is placeholder


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("key: AKIA0123456789ABCDEF", "AKIA0123456789ABCDEF"),
        ("ghp_" + "0" * 36, "ghp_" + "0" * 36),
        ("github_pat_" + "0" * 22, "github_pat_" + "0" * 22),
        ("glpat-" + "0" * 20, "glpat-" + "0" * 20),
        ("xoxb-0000000000", "xoxb-0000000000"),
        ("AIza" + "0" * 35, "AIza" + "0" * 35),
        ("sk-proj-" + "0" * 20, "sk-proj-" + "0" * 20),
        ("-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY"),
        ("-----BEGIN PUBLIC KEY-----", None),
        ("eyJhbGciOiJub25l.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl", "eyJhbGciOiJub25l.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl"),
        ("postgres://noetl:hunter2@127.0.0.1/db", "hunter2"),
        ("postgres://noetl:{{ keychain.pg.password }}@127.0.0.1/db", None),
        ("postgres://noetl:<password>@127.0.0.1/db", None),
        ("postgres://noetl:***@127.0.0.1/db", None),
        ("postgres://127.0.0.1:5432/db?user=me@example.org", None),
        ("http://127.0.0.1:8080/a@b", None),
        ("http://x?api_key=0123456789", "0123456789"),
        ("http://x?api_key={{ keychain.x.key }}", None),
        ("http://x?token=short", None),
        ("curl -H 'Authorization: Bearer 0123456789abcdef'", "0123456789abcdef"),
        ("Basic understanding of bearer bonds", None),
        ("sk-learn-pipeline-training-job", None),
    ],
)
def test_well_known_secrets(text: str, secret: str | None) -> None:
    assert [text[start:end] for _, start, end in known_secrets(text)] == ([secret] if secret else [])


@pytest.mark.parametrize(
    ("body", "pointed"),
    [
        (task("kind: http, url: u, headers: { Authorization: Bearer abc }"), "Bearer abc"),
        (task("kind: http, url: u, auth: { type: basic, password: abc }"), "abc"),
        (task("kind: python, code: x = 1, input: { token: abc }"), "abc"),
        (task("kind: noop", root="keychain: [{ name: k, kind: basic, password: 12 }]"), "12"),
    ],
)
def test_secrets_in_plain_text_are_underlined(body: str, pointed: str) -> None:
    assert report(body) == [("NOE505", pointed)]
    assert pointed not in message(body), "the secret itself is not repeated"


@pytest.mark.parametrize(
    "body",
    [
        task('kind: http, url: u, headers: { Authorization: "Bearer {{ keychain.k.token }}" }', root="keychain: [k]"),
        task("kind: python, code: x = 1, input: { token: k }", root="keychain: [k]"),
        task("kind: python, code: x = 1, input: { token: true, password: null, access_token: 5 }"),
        task("kind: secrets, secret: orders-token, field: password"),
        task("kind: noop", root="keychain: [{ name: k, kind: secret_manager, map: { api_key: openai-key } }]"),
        task("kind: noop", root="executor: { spec: { workload_schema: { properties: { token: { default: abc } } } } }"),
        task(
            "kind: transfer, source: { kind: file, path: a }, target: { kind: file, path: b, columns: { token: token } }"
        ),
    ],
)
def test_names_of_secrets_are_not_secrets(body: str) -> None:
    assert report(body) == []


def test_a_known_secret_under_a_secret_name_is_told_once() -> None:
    assert report(task("kind: noop", root="keychain: [{ name: k, kind: b, token: AKIA0123456789ABCDEF }]")) == [
        ("NOE505", "AKIA0123456789ABCDEF")
    ]


def test_a_secret_that_looks_like_two_sorts_is_told_once() -> None:
    token = "ghp_" + "a1b2" * 9
    assert report(task(f'kind: http, url: "http://127.0.0.1/?token={token}"')) == [("NOE505", token)]


def test_a_secret_in_a_comment_is_known_to_readers_too() -> None:
    assert report("    # was: AKIA0123456789ABCDEF\n" + task("kind: noop")) == [("NOE505", "AKIA0123456789ABCDEF")]


@pytest.mark.parametrize(
    ("command", "pointed"),
    [
        ("ls {{ workload.y }}", ["workload.y"]), ("ls {{ y }} {{ workload.rows[0] }}", ["y", "workload.rows[0"]),
        ("ls {{ ctx.dir | default('x') }}", ["ctx.dir"]), ("echo {{ workload.y ~ '.csv' }}", ["workload.y"]),
        ("ls {{ workload.y | quote }}", []), ("head -n {{ workload.x | int }}", []),
        ("echo {{ execution_id }} {{ _attempt }}", []), ("ls {{ '-l' if workload.x else '' }}", []),
        ("ls {% if workload.x %}-l{% endif %}", []), ("echo $((1 + 1))", []),
    ],
)  # fmt: skip
def test_values_in_shell_commands(command: str, pointed: list[str]) -> None:
    found = [text for code, text in report(task(f'kind: shell, command: "{command}"')) if code == "NOE506"]
    assert found == pointed


def test_arguments_and_the_environment_are_safe() -> None:
    assert report(task('kind: shell, command: [ls, "{{ workload.y }}"]')) == []
    assert report(task('kind: shell, command: ls "$Y", env: { Y: "{{ workload.y }}" }, cwd: "{{ workload.y }}"')) == []


def test_the_name_of_a_variable_is_suggested() -> None:
    found = message(task("kind: shell, command: \"ls {{ workload['my-dir'] | default(1) }}\""))
    assert "env: { MY_DIR:" in found
    assert '"$MY_DIR"' in found


@pytest.mark.parametrize("taken", ["path", "home", "2nd"])
def test_no_variable_is_suggested_that_the_shell_goes_by(taken: str) -> None:
    found = message(task(f"kind: shell, command: \"ls {{{{ workload['{taken}'] | default(1) }}}}\""))
    assert f"env: {{ INPUT_{taken.upper()}:" in found


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ('kind: postgres, query: "SELECT {{ workload.y | raw }}, {{ workload.x|raw }}"', 2),
        ('kind: duckdb, commands: ["SELECT {{ workload.y | raw }}"]', 1),
        ("kind: postgres, query: \"SELECT '{{ workload.y }}'\"", 0),
        ('kind: duckdb, query: "{{ workload.y | raw }}"', 1),
        ('kind: http, url: "{{ workload.y | raw }}"', 0),
        ('kind: postgres, query: "SELECT 1 | 2", params: { raw: "{{ workload.y | raw }}" }', 0),
    ],
)
def test_raw_in_sql(fields: str, count: int) -> None:
    assert report(task(fields)) == [("NOE507", "raw")] * count


def test_sql_that_is_nothing_but_a_value() -> None:
    assert report(task('kind: duckdb, query: "{{ workload.y }}"')) == [("NOE507", "{{ workload.y }}")]


CODE = """\
    workflow:
      - step: a
        tool:
          kind: python
          code: |
"""


def python(*lines: str) -> str:
    return CODE + "".join(f"            {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("lines", "line", "column"),
    [
        (("x = 1", "if x", "    pass"), 10, 13), (("x = (1,", "y = 2"), 9, 13), (("é = 'ü' ü",), 9, 17),
        (("x = 1", "  y = 2"), 10, 11), (("def main():",), 9, 20),
    ],
)  # fmt: skip
def test_python_errors_stand_where_they_are(lines: tuple[str, ...], line: int, column: int) -> None:
    (found,) = diagnostics(python(*lines))
    assert (found.code, found.line, found.column) == ("NOE508", line, column)


@pytest.mark.parametrize(
    "lines",
    [
        ("return 1",), ("await x", "async with a as b:", "    pass"), ("result = re.findall('\\d+', text)",),
        ("path = 'C:\\dir\\\\file'",), ("match x:", "    case {'a': 1}:", "        pass"),
        ("'''Docstring'''", "", "result = 1"), ("# nothing",),
    ],
)  # fmt: skip
def test_python_that_compiles_is_fine(lines: tuple[str, ...]) -> None:
    assert diagnostics(python(*lines)) == ()


def test_code_may_be_indented_as_a_whole() -> None:
    assert isinstance(read("    x = 1\n    y = 2\n"), ast.Module)
    assert read("    x = 1\n    y = = 2\n") == Refusal("invalid syntax", len("    x = 1\n    y = "))


def test_code_that_no_parser_survives_is_left_alone() -> None:
    for text in ("(" * 5000 + ")" * 5000, "-" * 50_000 + "1", "1" + "+1" * 100_000, "x" + "[0]" * 50_000):
        assert not isinstance(read(text), ast.Module)


def test_a_node_is_placed_behind_wide_characters() -> None:
    text = "  s = 'ü', {{ 1 }}\n"
    tree = read(text)
    assert isinstance(tree, ast.Module)
    (found,) = [node for node in ast.walk(tree) if isinstance(node, ast.Set) and isinstance(node.elts[0], ast.Set)]
    assert text[Places(text).of(found) :].startswith("{{ 1")


@pytest.mark.parametrize(
    ("line", "pointed"),
    [
        ("x = {{ workload.x }}", ["{{"]), ("x = '{{ workload.x }}'", ["{{"]),
        ('x = "http://h/{{ ctx.page | default(1) }}/{{ ctx.a }}"', ["{{"]), ("x = '{{ execution_id }}'", ["{{"]),
        ("x = f'{{ workload.x }}'", []), ("x = '{{}}'.format(1)", []), ("x = '{{ name }}'", []),
        ("x = Template('Dear {{ user }},')", []), ("x = {1: {2}}", []), ("x = {frozenset({1})}", []),
    ],
)  # fmt: skip
def test_templates_in_python(line: str, pointed: list[str]) -> None:
    assert [text for code, text in report(python(line)) if code == "NOE509"] == pointed
