"""Unknown calls and unsupported statements are found without evaluation."""

from __future__ import annotations

import pytest

from noetl.expr import EvaluationError, compile_template

FOUND = [
    ("{{ a | ▲uper }}", "filter", "uper", ("upper",)),
    ("{{ a | ▲jsonify }}", "filter", "jsonify", ()),
    ("{{ a | ▲attr('x') }}", "filter", "attr", ()),
    ("{{ a | ▲random }}", "filter", "random", ()),
    ("{{ a | map(▲'uper') | list }}", "filter", "uper", ("upper",)),
    ("{{ a | select(▲'od') }}", "test", "od", ("odd",)),
    ("{{ a | selectattr('x', ▲'equals', 1) }}", "test", "equals", ()),
    ("{{ a is ▲defned }}", "test", "defned", ("defined",)),
    ("{{ a is not ▲defned }}", "test", "defned", ("defined",)),
    ("{{ ▲rnge(3) }}", "function", "rnge", ("range",)),
    ("{{ ▲nwo() }}", "function", "nwo", ("now",)),
    ("{{ ▲int(a) }}", "function", "int", ("int",)),
    ("{{ ▲len(a) }}", "function", "len", ()),
    ("{{ ▲open('x') }}", "function", "open", ()),
    ("{{ a.▲startwith('x') }}", "method", "startwith", ("startswith",)),
    ("{{ a.▲append(1) }}", "method", "append", ()),
    ("{{ a.▲foo() }}", "method", "foo", ()),
    ("{{ a.▲__class__ }}", "attribute", "__class__", ()),
    ("{{ a.▲__len__() }}", "attribute", "__len__", ()),
    ("{{ a.b.▲__init__.c }}", "attribute", "__init__", ()),
    ("{% ▲include 'x' %}", "statement", "include", ()),
    ("{% ▲import 'x' as y %}", "statement", "import", ()),
    ("{% ▲from 'x' import y %}", "statement", "from", ()),
    ("{% ▲extends 'x' %}", "statement", "extends", ()),
    ("{% ▲block x %}{% endblock %}", "statement", "block", ()),
    ("{% ▲macro x() %}{% endmacro %}", "statement", "macro", ()),
    ("{% ▲filter upper %}{% endfilter %}", "statement", "filter", ()),
    ("{% ▲with a = 1 %}{% endwith %}", "statement", "with", ()),
    ("{% ▲autoescape true %}{% endautoescape %}", "statement", "autoescape", ()),
    ("{% ▲do a.append(1) %}", "statement", "do", ()),
    ("{% for i in a %}{% ▲break %}{% endfor %}", "statement", "break", ()),
    ("{% for i in a %}{% ▲continue %}{% endfor %}", "statement", "continue", ()),
    ("{% ▲print a %}", "statement", "print", ()),
    ("{{ a[▲1:2, 3] }}", "attribute", ":", ()),
    ("{% ▲set a.b = 1 %}", "statement", "set", ()),
    ("{{ a | ▲round(1, 'floor', 3) }}", "filter", "round", ()),
    ("{{ a | ▲default(defalt=1) }}", "filter", "default", ()),
    ("{{ a is ▲divisibleby }}", "test", "divisibleby", ()),
    ("{{ ▲done() }}", "function", "done", ()),
]


@pytest.mark.parametrize(("marked", "kind", "name", "candidates"), FOUND)
def test_problem(marked: str, kind: str, name: str, candidates: tuple[str, ...]) -> None:
    source = marked.replace("▲", "")
    template = compile_template(source)
    (problem,) = template.problems
    assert (problem.kind, problem.name) == (kind, name)
    assert problem.offset == marked.index("▲")
    assert name in problem.message
    assert set(candidates) <= set(problem.candidates)
    with pytest.raises(EvaluationError) as caught:
        template.evaluate({"a": ["x"]}, functions={"done": lambda step: True})
    assert caught.value.message == problem.message
    assert caught.value.offset == problem.offset


def test_all_problems_are_found_in_order() -> None:
    template = compile_template("{{ a | uper }} {{ b is od }} {{ c | loer }} {% include 'x' %}")
    assert [problem.name for problem in template.problems] == ["uper", "od", "loer", "include"]


def test_only_the_first_of_many_problems_get_suggestions() -> None:
    problems = compile_template("{{ a | uper }}" * 1_000).problems
    assert len(problems) == 1_000
    assert problems[0].candidates
    assert not problems[-1].candidates


def test_a_problem_that_is_not_reached_does_no_harm() -> None:
    template = compile_template("{{ 1 if a else b | uper }}")
    assert template.evaluate({"a": True}) == 1
    assert len(template.problems) == 1


def test_reasons_are_given_for_what_is_left_out_on_purpose() -> None:
    def message(source: str) -> str:
        return compile_template(source).problems[0].message

    assert "plain data" in message("{{ a | attr('x') }}")
    assert "same value" in message("{{ a | random }}")
    assert "`value | length`" in message("{{ len(a) }}")
    assert "filter" in message("{{ int(a) }}")
    assert "which templates cannot do" in message("{{ a.append(1) }}")
    assert "['__class__']" in message("{{ a.__class__ }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ a | upper | default('x', true) }}", "{{ a | round(precision=2) }}", "{{ a | map('round', 1) | list }}",
        "{{ a | select('>', 2) }}", "{{ a | regex_search('x', '\\\\1', '\\\\2') }}", "{{ a is divisibleby 3 }}",
        "{{ done('x') and ok('x') and fail('x') and now() and gen_uuid() }}", "{{ a['__class__'] }}",
        "{{ a.__typename }}", "{{ a.split(',', maxsplit=1) }}", "{{ a | default(*b) }}",
        "{% raw %}{{ x | nofilter }}{% endraw %}{{ a }}",
    ],
)  # fmt: skip
def test_no_noise(source: str) -> None:
    assert compile_template(source).problems == ()
