"""Keeps files and functions short enough to read in one go, and module names saying what is inside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.source import ROOT, Module, functions, modules

FILE_LINES = 400
PACKAGE_LINES = 40
FUNCTION_LINES = 50
EMPTY_NAMES = {"utils", "util", "common", "helpers", "helper", "base", "core", "manager", "misc"}
VERSIONED = re.compile(r"_?v\d+$|_(new|old|legacy|copy|final)$")
NAMED_TEST = re.compile(r"tests/[\w/*]*\w(?:\*?\.py)?(?![\w/{])")
# A folder of dialects may be called after the versions of the language that it reads.
DIALECTS = "noetl.dsl.dialects."


def too_long(module: Module) -> Iterator[str]:
    lines, most = len(module.text.splitlines()), PACKAGE_LINES if module.is_package else FILE_LINES
    if lines > most:
        yield f"{module.path}: {lines} lines, at most {most}"
    for name, length in functions(module.tree):
        if length > FUNCTION_LINES:
            yield f"{module.path}: {name}() has {length} lines, at most {FUNCTION_LINES}"


def badly_named(module: Module) -> Iterator[str]:
    parts = module.name.split(".")
    for part in EMPTY_NAMES.intersection(parts):
        yield f"{module.path}: the name {part!r} says nothing of what is inside"
    if VERSIONED.search(parts[-1]) and not module.name.startswith(DIALECTS):
        yield f"{module.path}: a module replaces its predecessor, it does not stand beside it"


def vainly_named(module: Module) -> Iterator[str]:
    for named in NAMED_TEST.findall(ast.get_docstring(module.tree) or ""):
        if not list(ROOT.glob(named)):
            yield f"{module.path}: there is no {named}"


def badly_introduced(module: Module) -> Iterator[str]:
    text = ast.get_docstring(module.tree)
    if not text:
        yield f"{module.path}: no docstring"
        return
    first, *rest = text.splitlines()
    if not first.endswith((".", ":")) or (rest and rest[0]):
        yield f"{module.path}: the docstring's first line is not one whole sentence: {first!r}"


def test_files_and_functions_stay_within_their_budgets() -> None:
    assert [line for module in modules() for line in too_long(module)] == []


def test_module_names_say_what_is_inside() -> None:
    assert [line for module in modules() for line in badly_named(module)] == []


def test_every_module_introduces_itself_in_one_sentence() -> None:
    assert [line for module in modules() for line in badly_introduced(module)] == []


def sample(text: str, name: str = "noetl.sample", path: str = "src/noetl/sample.py") -> Module:
    return Module(name, path, text)


def test_the_budgets_catch_what_is_too_long() -> None:
    assert list(too_long(sample("x = 1\n" * FILE_LINES))) == []
    assert list(too_long(sample("x = 1\n" * (FILE_LINES + 1)))) != []
    assert list(too_long(sample("x = 1\n" * (PACKAGE_LINES + 1), "noetl", "src/noetl/__init__.py"))) != []
    assert list(too_long(sample("def f():\n" + "    x = 1\n" * (FUNCTION_LINES - 1)))) == []
    assert list(too_long(sample("def f():\n" + "    x = 1\n" * FUNCTION_LINES))) != []


def test_the_name_check_catches_bad_names() -> None:
    for name in ("noetl.utils", "noetl.dsl.helpers.text", "noetl.parse_v2", "noetl.dsl.parsev2", "noetl.parse_old"):
        assert list(badly_named(sample("", name))) != [], name
    for name in ("noetl.dsl.parse", "noetl.dsl.dialects.v1", "noetl.tools.http"):
        assert list(badly_named(sample("", name))) == [], name


def test_the_docstring_check_catches_missing_and_broken_first_lines() -> None:
    assert list(badly_introduced(sample('"""Reads a file.\n\nMore of it."""\n'))) == []
    for text in ("x = 1\n", '"""Reads a file"""\n', '"""Reads a file that\nis long."""\n'):
        assert list(badly_introduced(sample(text))) != [], text


def test_every_test_that_a_module_names_exists() -> None:
    assert [problem for module in modules() for problem in vainly_named(module)] == []


def test_a_test_that_is_not_there_is_seen() -> None:
    text = '"""Does things. Tested in tests/architecture/test_budgets.py, tests/docs and tests/nowhere/test_it*.py."""'
    assert list(vainly_named(Module("noetl.x", "src/noetl/x.py", text))) == [
        "src/noetl/x.py: there is no tests/nowhere/test_it*.py"
    ]
