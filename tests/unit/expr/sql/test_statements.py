"""SQL by lexical place: no value changes how the text around it is read."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.expr import TemplateError, compile_template
from noetl.expr.sql.statements import Dialect, render_sql
from tests.unit.expr.sql.sql_corpus import AWKWARD, INJECTIONS, REFUSED

# An independent and simple reading of PostgreSQL's lexical rules, to compare with.
_ORACLE = re.compile(
    r"""(?P<comment>--[^\n\r]*|/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/)
    |(?P<text>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*')
    |(?P<dollar>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    |(?P<name>"(?:[^"]|"")*")
    |(?P<space>\s+)|(?P<word>\w+)|(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
PLACES = (
    "SELECT {{ v }} FROM t", "SELECT '{{ v }}' FROM t", "SELECT E'{{ v }}' FROM t", "SELECT 'a''{{ v }}''b' FROM t",
    "SELECT a, $${{ v }}$$ FROM t", "SELECT $x$ {{ v }} $x$ FROM t", 'SELECT "{{ v }}" FROM t',
    "SELECT 1 -- {{ v }}\nFROM t", "SELECT 1 /* {{ v }} */ FROM t",
    "SELECT '{{ v | replace(\"'\", \"''\") }}' FROM t", "INSERT INTO t (a, b) VALUES ({{ v }}, '{{ v }}')",
    "UPDATE t SET a = {{ v }} WHERE b = '{{ v }}' AND c = {{ v }}",
    "DO $$ BEGIN PERFORM f('{{ v }}', {{ v }}); END $$",
    "CREATE FUNCTION f() RETURNS text AS $b$ SELECT '{{ v }}' /* {{ v }} */ $b$ LANGUAGE sql",
    "{% if v %}SELECT {{ v }}{% endif %}; SELECT {{ v | upper }}",
)  # fmt: skip
DIALECTS: tuple[Dialect, ...] = ("postgres", "duckdb")


def rendered(template: str, scope: dict[str, Any], **more: Any) -> str:
    text = render_sql(compile_template(template), scope, **more)
    assert isinstance(text, str)
    return text


def skeleton(text: str, inside: bool = True) -> list[str]:
    """Return the SQL tokens without quoted content; bodies of programs are lexed."""
    found: list[str] = []
    for match in _ORACLE.finditer(text):
        kind = match.lastgroup or ""
        if kind == "dollar" or match["dollar"]:
            found.append("dollar")
            if inside and text.startswith(("DO", "CREATE FUNCTION")):
                found += skeleton(re.sub(r"^\$\w*\$|\$\w*\$$", "", match.group()), False)
        elif kind in ("text", "name", "comment"):
            found.append(kind)
        elif kind != "space":
            found.append(match.group())
    return found


def test_the_corpora_are_large_enough() -> None:
    assert len(set(INJECTIONS)) >= 60
    assert len(AWKWARD) >= 40


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("place", PLACES)
def test_no_injection_changes_the_statement(place: str, dialect: Dialect) -> None:
    harmless = skeleton(rendered(place, {"v": "v"}, dialect=dialect))
    for value in INJECTIONS:
        assert skeleton(rendered(place, {"v": value}, dialect=dialect)) == harmless, value


@pytest.mark.parametrize("value", INJECTIONS)
def test_no_injection_leaves_a_name(value: str) -> None:
    try:
        text = rendered("SELECT 1 FROM {{ v }} WHERE a = 1", {"v": value})
    except TemplateError:
        return
    names = [part for part in skeleton(text)[3:-4] if part != "."]
    assert skeleton(text)[:3] == ["SELECT", "1", "FROM"]
    assert skeleton(text)[-4:] == ["WHERE", "a", "=", "1"]
    assert set(names) == {"name"}


@given(st.text(alphabet=st.sampled_from("'\"\\$q1-/*;\n aé%"), max_size=12), st.sampled_from(PLACES))
def test_no_text_changes_the_statement(value: str, place: str) -> None:
    wanted = rendered(place, {"v": "v"} if value or "if v" not in place else {"v": ""})
    assert skeleton(rendered(place, {"v": value})) == skeleton(wanted)


@given(st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8")))
def test_a_literal_holds_exactly_its_text(value: str) -> None:
    written = rendered("SELECT {{ v }}", {"v": value}, dialect="duckdb").removeprefix("SELECT ")
    assert written[0] == written[-1] == "'"
    assert written[1:-1].replace("''", "'") == value
    assert rendered("SELECT '{{ v }}'", {"v": value})[8:-1].replace("''", "'") == value


@pytest.mark.parametrize(("template", "scope", "text"), AWKWARD)
def test_awkward_sql(template: str, scope: dict[str, Any], text: str) -> None:
    assert rendered(template, scope) == text


@pytest.mark.parametrize(("template", "scope"), REFUSED)
def test_what_cannot_be_written_safely_is_refused(template: str, scope: dict[str, Any]) -> None:
    with pytest.raises(TemplateError) as caught:
        rendered(template, scope)
    assert caught.value.message


# A reading of Snowflake's rules: backslashes escape in every text.
_SNOWFLAKE = re.compile(
    r"(?s)(?P<comment>(?:--|//)[^\n\r]*)|(?P<text>'(?:[^'\\]|\\.|'')*')|(?P<space>\s+)|(?P<word>\w+)|(?P<sign>.)"
)


@pytest.mark.parametrize(
    "place", ["SELECT {{ v }}, 1", "SELECT '{{ v }}', '{{ v }}'", "SELECT 1 // {{ v }}\n, 2", "SELECT 'a\\'{{ v }}'"]
)
def test_no_injection_changes_a_statement_for_snowflake(place: str) -> None:
    def found(value: str) -> list[str]:
        matches = _SNOWFLAKE.finditer(rendered(place, {"v": value}, dialect="snowflake"))
        return ["text" if m["text"] else "comment" if m["comment"] else m.group() for m in matches if not m["space"]]

    for value in INJECTIONS:
        assert found(value) == found("v"), value


def test_a_dollar_quote_for_snowflake_has_no_name() -> None:
    assert rendered("SELECT $${{ v }}$$", {"v": "it's"}, dialect="snowflake") == "SELECT $$it's$$"
    with pytest.raises(TemplateError):
        rendered("SELECT $${{ v }}$$", {"v": "a$$b"}, dialect="snowflake")


@pytest.mark.parametrize(
    "template",
    [
        "EXECUTE IMMEDIATE $$ DELETE FROM t WHERE a = '{{ v }}' $$",
        "SELECT cron.schedule('x', '* * * * *', $$ DELETE FROM t WHERE a = '{{ v }}' $$)",
        "SELECT dblink_exec('c', $$ DELETE FROM t WHERE a = '{{ v }}' $$)",
    ],
)
def test_a_text_that_will_be_run_is_code(template: str) -> None:
    assert "a = '''; x' $$" in rendered(template, {"v": "'; x"})


def test_undefined_is_null_where_that_is_wanted() -> None:
    assert rendered("SELECT {{ a }}, '{{ a.b }}'", {}, strict=False) == "SELECT NULL, ''"


def test_percent_signs_are_doubled_for_a_driver_that_reads_them() -> None:
    template = "SELECT {{ v }}, '{{ v }}', %s"
    assert rendered(template, {"v": "5%"}, percent=True) == "SELECT '5%%', '5%%', %s"
    assert rendered(template, {"v": "5%"}) == "SELECT '5%', '5%', %s"


@pytest.mark.parametrize("template", ["{{ v | raw }}", "{{ v }}", "\n{{ v }}\n"])
def test_a_text_that_is_one_template_is_the_statement_itself(template: str) -> None:
    assert render_sql(compile_template(template), {"v": ["SELECT 1", "SELECT 2"]}) == ["SELECT 1", "SELECT 2"]
    assert render_sql(compile_template(template), {"v": "SELECT 1"}) == "SELECT 1"
    with pytest.raises(TemplateError, match="`v` is undefined"):
        render_sql(compile_template(template), {})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("inf"), "CAST('inf' AS DOUBLE PRECISION)"),
        (float("nan"), "CAST('nan' AS DOUBLE PRECISION)"),
        (1e16, "1e+16"),
    ],
)
def test_unusual_numbers(value: float, text: str) -> None:
    assert rendered("SELECT {{ v }}", {"v": value}) == f"SELECT {text}"


def test_the_budget_holds() -> None:
    with pytest.raises(TemplateError, match="bytes"):
        rendered("SELECT {% for i in range(3000) %}{{ v }},{% endfor %}", {"v": "x" * 10_000})
