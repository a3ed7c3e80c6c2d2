"""Error tree of templates; syntax errors have an offset, a reason and a fix."""

from __future__ import annotations

import pytest

from noetl.expr import (
    BudgetExceeded,
    EvaluationError,
    TemplateError,
    TemplateSyntaxError,
    UndefinedError,
    compile_template,
)

# The text with ▲ before the character that the error points at, a part of the message, a part of the fix.
MISTAKES = [
    ("▲{{ a", "`{{` is never closed", "`}}`"),
    ("text ▲{{ a", "`{{` is never closed", "`}}`"),
    ("▲{% if a", "`{%` is never closed", "`%}`"),
    ("{{ a ▲}", "single `}`", "`}}`"),
    ("{{ a ▲} b", "single `}`", "`}}`"),
    ("{% if a ▲}}x{% endif %}", "starts with `{%`", "`%}`"),
    ("{{ a ▲%}", "ends with `%}`", "`}}`"),
    ("{{ {'a': 1}▲} }}", "one `}` too many", "remove"),
    ("{{ ▲{{ a }} }}", "inside", "remove the inner braces"),
    ("▲{# never", "`{#` is never closed", "`#}`"),
    ("▲{% raw %}x", "raw", "endraw"),
    ("{{ ▲(a }}", "`(` is never closed", "`)`"),
    ("{{ f([1, 2▲) }}", "expected `]`", "`]`"),
    ("{{ ▲[1, 2 }}", "`[` is never closed", "`]`"),
    ("{{ (a ▲", "", ""),
    ("{{ a▲) }}", "no matching `(`", "remove"),
    ("{{ a▲] }}", "no matching `[`", "remove"),
    ("{{ ▲'abc }}", "quote is never closed", "`'`"),
    ('{{ a == ▲"abc }}', "quote is never closed", '`"`'),
    ("{{ a | default(▲'x) }} and {{ b | default('y') }}", "quote is never closed", "`'`"),
    ("{{ a['b'] ~ ▲'x }}\n{% if c == 'd' %}e{% endif %}", "quote is never closed", "`'`"),
    ("{{ ▲'abc }} {{ d", "quote is never closed", "`'`"),
    ("{{ '{{ a }}' ~ ▲'b }}", "quote is never closed", "`'`"),
    ("{{ ▲“abc” }}", "typographic", "straight"),
    ("{{ ▲`abc` }}", "backquotes", "`'…'`"),
    ("{{ a ▲= 1 }}", "`=` does not compare", "`==`"),
    ("{% if a ▲= 1 %}x{% endif %}", "`=` does not compare", "`==`"),
    ("{{ a ▲=== 1 }}", "`===`", "`==`"),
    ("{{ a ▲!== 1 }}", "`!==`", "`!=`"),
    ("{{ a ▲&& b }}", "`&`", "`and`"),
    ("{{ a ▲|| b }}", "`||`", "`or`"),
    ("{{ ▲!a }}", "`!`", "`not`"),
    ("{{ a ▲? b : c }}", "`a ? b : c`", "`b if a else c`"),
    ("{{ ▲$value }}", "`$`", "remove"),
    ("{{ a▲; b }}", "`;`", "one"),
    ("{{ a ▲^ 2 }}", "`^`", "`**`"),
    ("{{ ▲[x for x in y] }}", "comprehensions", "filters"),
    ("{{ ▲{x for x in y} }}", "comprehensions", "filters"),
    ("{{ ▲lambda x: x }}", "lambda", "filter"),
    ("{{ a ▲AND b }}", "`AND`", "`and`"),
    ("{{ a ▲OR b }}", "`OR`", "`or`"),
    ("▲{{ }}", "nothing between", "expression"),
    ("▲{%- %}", "nothing between", "expression"),
    ("{{ a. ▲}}", "a name is missing after `.`", "key"),
    ("{{ a | ▲}}", "filter name is missing", "filter"),
    ("{{ a ▲+ }}", "nothing follows `+`", "value after it"),
    ("{{ a ▲+}}", "nothing follows `+`", "value after it"),
    ("{{ a ▲+ -}}", "nothing follows `+`", "value after it"),
    ("{{ a ▲== }}", "nothing follows `==`", "value after it"),
    ("{{ a ▲and }}", "nothing follows `and`", "value after it"),
    ("{{ a ▲if }}", "nothing follows `if`", "value after it"),
    ("{{ a if b ▲else }}", "nothing follows `else`", "value after it"),
    ("{% if a ▲in %}x{% endif %}", "nothing follows `in`", "value after it"),
    ("{% ▲if %}x{% endif %}", "nothing follows `if`", "value after it"),
    ("{{ (a ▲+ ) }}", "nothing follows `+`", "value after it"),
    ("{{ f(a, ▲-) }}", "nothing follows `-`", "value after it"),
    ("{{ {'a'▲: } }}", "nothing follows `:`", "value after it"),
    ("{{ [a ▲* ] }}", "nothing follows `*`", "value after it"),
    ("{{ a + ▲* b }}", "`*` follows `+` directly", "value between"),
    ("{{ a ▲+ } b }}", "nothing follows `+`", "value after it"),
    ("▲{% if a %}x", "`{% if … %}` is never closed", "endif"),
    ("{% if a %}▲{% for b in c %}x{% endif %}", "", ""),
    ("{% for a in b %}{% ▲endif %}", "`endif` has no matching opening statement", "endfor"),
    ("x{% ▲endif %}", "`endif` has no matching opening statement", "remove"),
    ("{% if a %}{% ▲elseif b %}{% endif %}", "`elseif`", "`elif`"),
    ("{% ▲fro a in b %}", "unknown statement `fro`", "`for`"),
    ("{% ▲whatever %}", "unknown statement `whatever`", "`if`, `for` and `set`"),
    ("{{ a ▲b }}", "expected `}}`, got `b`", ""),
    ("{{ f(a ▲b) }}", "expected `,`, got `b`", ""),
    ("line\nline {{ a ▲= 1 }}", "`=` does not compare", "`==`"),
    ("line\r\nline\r\n {{ a ▲= 1 }}", "`=` does not compare", "`==`"),
    ("é€ {{ a ▲= 1 }}", "`=` does not compare", "`==`"),
    ("  {{- a ▲= 1 -}}", "`=` does not compare", "`==`"),
    ("{# note #}{{ 1 }} {{ a ▲&& b }}", "`&`", "`and`"),
    ("{{ ▲'\\xz' }}", "escape", ""),
    ("{{ a▲€ }}", "`€`", ""),
]


@pytest.mark.parametrize(("marked", "message", "fix"), MISTAKES)
def test_mistake(marked: str, message: str, fix: str) -> None:
    source = marked.replace("▲", "")
    with pytest.raises(TemplateSyntaxError) as caught:
        compile_template(source)
    error = caught.value
    if message:
        assert message in error.message
        assert error.offset == marked.index("▲")
    assert fix in (error.fix or "")
    assert error.offset is not None


def test_messages_have_no_jargon() -> None:
    for marked, _, _ in MISTAKES:
        with pytest.raises(TemplateSyntaxError) as caught:
            compile_template(marked.replace("▲", ""))
        for word in ("print statement", "statement block", "token", "Jinja", "lineno"):
            assert word not in caught.value.message


def test_an_error_is_raised_each_time() -> None:
    for _ in range(2):
        with pytest.raises(TemplateSyntaxError):
            compile_template("{{ a")


def test_a_template_that_is_too_long_is_refused() -> None:
    with pytest.raises(TemplateSyntaxError, match="characters long"):
        compile_template("{{ a }}" + "x" * 300_000)


@pytest.mark.parametrize("error", [TemplateSyntaxError, EvaluationError, UndefinedError, BudgetExceeded])
def test_one_tree(error: type[TemplateError]) -> None:
    raised = error("what", 5, "fix")
    assert isinstance(raised, TemplateError)
    assert (str(raised), raised.message, raised.offset, raised.fix) == ("what", "what", 5, "fix")


def test_what_goes_wrong_in_an_evaluation_is_an_evaluation_error() -> None:
    assert issubclass(UndefinedError, EvaluationError)
    assert issubclass(BudgetExceeded, EvaluationError)
    assert not issubclass(TemplateSyntaxError, EvaluationError)


def test_the_most_exact_place_is_kept() -> None:
    error = EvaluationError("what")
    error.at(7)
    error.at(3)
    assert error.offset == 7
