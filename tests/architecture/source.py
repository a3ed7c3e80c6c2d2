"""The project's own source as data for the architecture tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
CORE = ("noetl.authoring", "noetl.dsl", "noetl.engine", "noetl.expr", "noetl.model")


@dataclass(frozen=True)
class Module:
    """One Python file: dotted name, path from the project's root, and text."""

    name: str
    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")

    @property
    def is_core(self) -> bool:
        return any(self.name == package or self.name.startswith(f"{package}.") for package in CORE)


@cache
def modules() -> tuple[Module, ...]:
    """Return every module under src, sorted by name."""
    return tuple(sorted((read(path) for path in SRC.rglob("*.py")), key=lambda module: module.name))


def read(path: Path) -> Module:
    parts = path.relative_to(SRC).with_suffix("").parts
    name = ".".join(part for part in parts if part != "__init__")
    return Module(name, path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of lines of every function, without decorators."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names of imports: `a.b` and `a.b.c` of `from a.b import c`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def dotted(node: ast.expr) -> str | None:
    """Return `a.b.c` as text, or None if the node is no plain chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return owner and f"{owner}.{node.attr}"
    return None
