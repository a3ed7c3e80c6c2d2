"""The contract of every rule: bad case reported, good case silent, full page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from noetl.dsl import rules
from noetl.dsl.checking.rule import Rule
from noetl.dsl.rules import RULES
from noetl.dsl.validate import validate
from noetl.wiring.embedded import language_kinds

KINDS = language_kinds()
FOLDER = Path(str(rules.__file__)).parent
HUNDREDS = {"reading": "0", "shape": "1", "names": "2", "templates": "3", "graph": "4", "tools": "5", "dialects": "8"}


def not_here(what: str, name: str) -> str | None:
    return "it is not part of this installation" if (what, name) == ("kind", "snowflake") else None


def by_code(rule: Rule) -> str:
    return f"{rule.code}-{rule.name}"


@pytest.mark.parametrize("rule", RULES, ids=by_code)
def test_the_bad_case_is_reported(rule: Rule) -> None:
    found = validate(rule.bad, "bad.yaml", KINDS, catalog=("examples/hello",), unavailable=not_here)
    assert rule.code in {diagnostic.code for diagnostic in found}


@pytest.mark.parametrize("rule", RULES, ids=by_code)
def test_the_good_case_is_silent(rule: Rule) -> None:
    assert validate(rule.good, "good.yaml", KINDS, catalog=("examples/hello",), unavailable=not_here) == ()


@pytest.mark.parametrize("rule", RULES, ids=by_code)
def test_the_page_is_complete(rule: Rule) -> None:
    assert re.fullmatch(r"NOE\d{3}", rule.code)
    assert rule.code[3] == HUNDREDS[rule.group]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    for text in (rule.summary, rule.why, rule.fix):
        assert text.strip()
        assert text.rstrip().endswith((".", "`", "```"))
    assert rule.bad != rule.good


@pytest.mark.parametrize("rule", RULES, ids=by_code)
def test_one_rule_is_one_file_named_after_it(rule: Rule) -> None:
    module = sys.modules[f"{rules.__name__}.{rule.group}.{rule.name.replace('-', '_')}"]
    assert module.RULE is rule
    assert (module.__doc__ or "").startswith(f"{rule.code} reports ")


def test_every_file_is_registered_and_codes_are_in_order() -> None:
    files = {path.relative_to(FOLDER) for path in FOLDER.rglob("*.py") if path.name != "__init__.py"}
    shared = {path for path in files if "RULE = Rule(" not in (FOLDER / path).read_text()}
    assert {Path(rule.group, f"{rule.name.replace('-', '_')}.py") for rule in RULES} == files - shared
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
