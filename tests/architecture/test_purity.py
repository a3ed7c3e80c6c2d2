"""Check that the core calls nothing impure: no file, console, clock or randomness.

Import contracts forbid whole modules. This test finds impure calls of allowed ones, such as `datetime.now`, and async code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.source import Module, dotted, imported, modules

BUILTINS = {"open", "print", "input", "eval", "exec", "compile", "breakpoint", "__import__", "globals", "vars"}
CLOCKS = {"now", "utcnow", "today"}
# Modules that are allowed in part: these names of them are not.
NAMES = {
    "uuid.uuid1", "uuid.uuid4", "uuid.getnode", "urllib.request", "hashlib.file_digest", "email.utils.localtime",
}  # fmt: skip


def impurities(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield f"{module.path}:{node.lineno}: asynchronous code"
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            if name in BUILTINS:
                yield f"{module.path}:{node.lineno}: {name}()"
            elif name is not None and clock(name):
                yield f"{module.path}:{node.lineno}: {name}() reads the clock"
            elif name in NAMES:
                yield f"{module.path}:{node.lineno}: {name}()"
    for name in NAMES.intersection(imported(module.tree)):
        yield f"{module.path}: imports {name}"


def clock(name: str) -> bool:
    """Whether a dotted name reads the clock: `datetime.now`, but not our own `now`."""
    owner, _, last = name.rpartition(".")
    return last in CLOCKS and owner.rpartition(".")[2] in {"datetime", "date"}


def test_the_core_calls_nothing_impure() -> None:
    core = [module for module in modules() if module.is_core]
    assert core
    assert [line for module in core for line in impurities(module)] == []


@pytest.mark.parametrize(
    "code",
    [
        "open('x')",
        "print(1)",
        "input()",
        "eval('1')",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import date\ndate.today()",
        "from datetime import datetime\ndatetime.utcnow()",
        "from uuid import uuid4",
        "import uuid\nuuid.uuid4()",
        "import urllib.request",
        "from urllib import request",
        "async def f(): pass",
    ],
)
def test_an_impure_call_is_seen(code: str) -> None:
    assert list(impurities(Module("noetl.dsl.sample", "src/noetl/dsl/sample.py", code))) != []


@pytest.mark.parametrize(
    "code", ["now()", "scope.now()", "from urllib.parse import quote", "import uuid\nuuid.uuid5(a, b)", "text.format()"]
)
def test_a_pure_call_is_left_alone(code: str) -> None:
    assert list(impurities(Module("noetl.dsl.sample", "src/noetl/dsl/sample.py", code))) == []
