"""Hold functions, folders and module names to their budgets.

A file has no budget of lines: one whole class is clearer than five files of it. Which module may write what is held by
test_ownership.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.folders import MODULES, SAME_KIND, crowded
from tests.architecture.source import ROOT, Module, functions, modules

PACKAGE_LINES = 40
FUNCTION_LINES = 50
EMPTY_NAMES = {"utils", "util", "common", "helpers", "helper", "base", "core", "manager", "misc"}
# What the stores share, and what the commands share, has no better name than that.
COMMON = ("noetl.stores.common", "noetl.cli.common")
VERSIONED = re.compile(r"_?v\d+$|_(new|old|legacy|copy|final)$")
NAMED_TEST = re.compile(r"tests/[\w/*]*\w(?:\*?\.py)?(?![\w/{])")
# A folder of dialects may be called after the versions of the language that it reads.
DIALECTS = "noetl.dsl.dialects."


def too_long(module: Module) -> Iterator[str]:
    lines = len(module.text.splitlines())
    if module.is_package and lines > PACKAGE_LINES:
        yield f"{module.path}: {lines} lines, at most {PACKAGE_LINES}"
    for name, length in functions(module.tree):
        if length > FUNCTION_LINES:
            yield f"{module.path}: {name}() has {length} lines, at most {FUNCTION_LINES}"


def badly_named(module: Module) -> Iterator[str]:
    parts = module.name.split(".")
    common = module.name.startswith(tuple(f"{name}." for name in COMMON)) or (
        module.name in COMMON and module.is_package
    )
    for part in EMPTY_NAMES.intersection(parts) - ({"common"} if common else set()):
        yield f"{module.path}: the name {part!r} says nothing of what is inside"
    if VERSIONED.search(parts[-1]) and not module.name.startswith(DIALECTS):
        yield f"{module.path}: a module replaces its predecessor, it does not stand beside it"


def only_forwards(module: Module) -> bool:
    """Whether a module holds only imports, aliases of them, and `__all__`."""
    if module.is_package:
        return False
    rest = [
        node
        for node in module.tree.body
        if not isinstance(node, ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    return all(
        isinstance(node, ast.Assign)
        and (isinstance(node.value, ast.Name | ast.Attribute) or ast.unparse(node.targets[0]) == "__all__")
        for node in rest
    )


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


def test_functions_and_packages_stay_within_their_budgets() -> None:
    assert [line for module in modules() for line in too_long(module)] == []


def test_no_module_only_forwards() -> None:
    assert [module.path for module in modules() if only_forwards(module)] == []


def test_module_names_say_what_is_inside() -> None:
    assert [line for module in modules() for line in badly_named(module)] == []


def test_every_module_introduces_itself_in_one_sentence() -> None:
    assert [line for module in modules() for line in badly_introduced(module)] == []


def sample(text: str, name: str = "noetl.sample", path: str = "src/noetl/sample.py") -> Module:
    return Module(name, path, text)


def test_the_budgets_catch_what_is_too_long() -> None:
    assert list(too_long(sample("x = 1\n" * 1000))) == []
    assert list(too_long(sample("x = 1\n" * (PACKAGE_LINES + 1), "noetl", "src/noetl/__init__.py"))) != []
    assert list(too_long(sample("def f():\n" + "    x = 1\n" * (FUNCTION_LINES - 1)))) == []
    assert list(too_long(sample("def f():\n" + "    x = 1\n" * FUNCTION_LINES))) != []


def test_a_crowded_folder_is_seen() -> None:
    files = [f"src/noetl/engine/m{number}.py" for number in range(MODULES)]
    assert crowded([*files, "src/noetl/engine/__init__.py"]) == []
    assert crowded([*files, "src/noetl/engine/one_more.py"]) == ["src/noetl/engine"]
    assert crowded(file.replace("engine", "dsl/rules/shape") for file in [*files, "src/noetl/engine/more.py"]) == []
    assert all(SAME_KIND.values())


def test_a_module_that_only_forwards_is_seen() -> None:
    for text in ("from a import b\n", '"""D."""\nimport a\nb = a.b\n__all__ = ["b"]\n', ""):
        assert only_forwards(sample(text)), text
    for text in ("from a import b\nX = b(1)\n", "def f(): pass\n", "import a\nclass B: pass\n"):
        assert not only_forwards(sample(text)), text
    assert not only_forwards(sample("from a import b\n", "noetl.a", "src/noetl/a/__init__.py"))


def test_the_name_check_catches_bad_names() -> None:
    for name in (
        "noetl.utils",
        "noetl.dsl.helpers.text",
        "noetl.engine.common.x",
        "noetl.cli.common",
        "noetl.parse_v2",
        "noetl.dsl.parsev2",
        "noetl.parse_old",
    ):
        assert list(badly_named(sample("", name))) != [], name
    for name in ("noetl.dsl.reading.parse", "noetl.dsl.dialects.v1", "noetl.tools.http", "noetl.stores.common.rows"):
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
