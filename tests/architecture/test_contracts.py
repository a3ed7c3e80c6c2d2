"""Check the import contracts, and prove that each of them can fail.

`make check` runs the contracts of pyproject.toml too; here small packages break them on purpose.
"""

from __future__ import annotations

import graphlib
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import pytest

from tests.architecture.source import CORE, ROOT, SRC, imported, modules

PYPROJECT = ROOT / "pyproject.toml"


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the project's contracts on the package `noetl` found in the folder."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from importlinter.cli import lint_imports as lint; "
    code += f"sys.exit(lint(config_filename={str(PYPROJECT)!r}, no_cache=True))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)


def test_the_package_keeps_its_contracts() -> None:
    done = lint_imports(ROOT / "src")
    assert done.returncode == 0, done.stdout + done.stderr


PACKAGES = (
    "cli", "lsp", "testing", "client", "server", "worker", "sources", "tools", "blobs", "doorbells", "stores", "engine", "authoring", "dsl",
    "triggers", "schedules", "expr", "audit", "model", "observe",
)  # fmt: skip


def rooms() -> list[str]:
    """Return an empty package for every sub-package that a contract orders."""
    contracts = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    inner = [one for one in contracts if one["type"] == "layers" and one["containers"] != ["noetl"]]
    return [
        f"{container.removeprefix('noetl.')}/{name.strip()}/__init__"
        for one in inner
        for container in one["containers"]
        for layer in one["layers"]
        for name in layer.replace(":", "|").split("|")
    ]


def small_package(folder: Path, extra: Mapping[str, str]) -> None:
    """Write an empty package with every layer of the real one, then the given files."""
    files = dict.fromkeys(
        (
            "__init__",
            "__main__",
            "wiring",
            "configuration",
            "settings",
            "environ",
            "extras",
            "clock",
            "private_files",
            "trace_context",
            "wire",
            "masking",
            "ports",
            "errors",
        ),
        "",
    )
    files |= {f"{package}/__init__": "" for package in PACKAGES}
    files |= dict.fromkeys(rooms(), "")
    files |= {"tools/contract": "", "tools/fields": "import noetl.tools.contract"}
    files |= {"dsl/reading/parse": "", "expr/runtime/budget": "", "tools/sql/__init__": ""}
    files |= dict.fromkeys(("tools/http", "tools/shell"), "import noetl.tools.contract, noetl.tools.fields")
    files |= {"tools/sql/statements": "import noetl.tools.fields", "tools/duckdb": "import noetl.tools.sql.statements"}
    files |= {"tools/sql/pg_pool": "", "tools/sql/connections": "import noetl.tools.sql.pg_pool"}
    files |= {"tools/postgres": "import noetl.tools.sql.connections, noetl.tools.sql.statements"}
    files |= dict.fromkeys(("blobs/database", "blobs/files", "blobs/memory", "blobs/postgres"), "")
    files |= {"doorbells/pg_notify": ""}
    for name, text in {**files, **extra}.items():
        path = folder / "noetl" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_the_small_package_keeps_the_contracts(tmp_path: Path) -> None:
    small_package(
        tmp_path,
        {"cli/__init__": "import noetl.wiring", "wiring": "import os, noetl.tools.http, noetl.dsl.reading.parse"},
    )
    done = lint_imports(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("contract", "name", "text"),
    [
        ("Imports point down", "dsl/reading/parse", "from noetl import tools"),
        ("Imports point down", "expr/runtime/budget", "import noetl.dsl.reading.parse"),
        ("Imports point down", "tools/http", "import noetl.cli"),
        ("Imports point down", "newcomer", ""),
        ("Rooms of the engine", "engine/state/__init__", "import noetl.engine.routing"),
        ("Rooms of the stores", "stores/sqlite/__init__", "import noetl.stores.postgres"),
        ("Rooms of the server", "server/newcomer", ""),
        ("The core does no I/O", "dsl/reading/parse", "import os.path"),
        ("The core does no I/O", "expr/runtime/budget", "def f():\n    import time"),
        ("The core does no I/O", "dsl/reading/parse", "from random import random"),
        ("Imports point down", "server/__init__", "import noetl.worker"),
        ("The core does no I/O", "engine/__init__", "import sqlite3"),
        ("Only wiring names the stores", "server/__init__", "import noetl.stores"),
        ("Only wiring names the tools", "cli/__init__", "import noetl.tools.http"),
        ("Only wiring names the tools", "lsp/__init__", "from noetl.tools import http"),
        ("Tools know nothing of each other", "tools/shell", "import noetl.tools.fields, noetl.tools.http"),
        ("Tools know nothing of each other", "tools/contract", "import noetl.tools.http"),
    ],
)
def test_a_broken_contract_is_named(tmp_path: Path, contract: str, name: str, text: str) -> None:
    small_package(tmp_path, {name: text})
    done = lint_imports(tmp_path)
    broken = [line for line in done.stdout.splitlines() if line.startswith(contract) and " BROKEN" in line]
    assert done.returncode == 1, done.stdout + done.stderr
    assert broken, done.stdout


def test_the_whole_core_is_under_the_contract() -> None:
    contracts = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    covered = next(set(contract["source_modules"]) for contract in contracts if contract["type"] == "forbidden")
    assert covered == {name for name in CORE if (SRC / name.replace(".", "/")).is_dir()}


def cycle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """One cycle of imports, or nothing."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("noetl", cache_dir=None)
    assert cycle({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}) == []


def test_a_circle_is_seen() -> None:
    assert cycle({"a": ["b"], "b": ["c"], "c": ["a"]}) != []
    assert cycle({"a": ["b"], "b": ["c"], "c": []}) == []


def declared(table: str = "") -> set[str]:
    """Return the distributions that pyproject.toml lists, of the base or of one extra."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    wanted = project["optional-dependencies"][table] if table else project["dependencies"]
    return {requirement.split(">")[0].split("[")[0].strip().lower() for requirement in wanted}


def distribution(module: str, known: Mapping[str, list[str]]) -> str | None:
    """The distribution that brings a module; None for our own and for Python's."""
    root = module.partition(".")[0]
    if root == "noetl" or root in sys.stdlib_module_names:
        return None
    return known[root][0].lower().replace("_", "-")  # both spellings of a name are one


def test_every_library_that_the_package_imports_is_declared() -> None:
    known = packages_distributions()
    # lsprotocol's types come with pygls, at the version that pygls works with.
    editors = declared("lsp") | {"lsprotocol"}
    postgres = declared("postgres")
    extras = {
        "noetl.lsp": editors,
        "noetl.cli.language.lsp": editors,
        "noetl.doorbells.pg_notify": postgres,
        "noetl.dsl.analysis.workload_schema": {"jsonschema-specifications"},  # comes with jsonschema
        "noetl.observe.export.parquet": declared("archive"),
        "noetl.observe.traces.otlp": declared("otel"),
        "noetl.sources.postgres": postgres,
        "noetl.stores.postgres": postgres,
        "noetl.stores.postgres.archive": postgres | declared("archive"),
        "noetl.worker.http": {"yarl"},  # comes with aiohttp, at the version that aiohttp works with
        "noetl.tools.postgres": postgres,
        "noetl.tools.sql.completion_markers": postgres,
        "noetl.tools.sql.duckdb_pool": declared("duckdb"),
        "noetl.tools.sql.pg_pool": postgres,
        "noetl.tools.sql.connections": postgres | declared("duckdb"),
        "noetl.tools.sql.rows": postgres | declared("duckdb"),
        "noetl.tools.duckdb": declared("duckdb"),
    }
    for module in modules():
        allowed = declared().union(*(names for start, names in extras.items() if module.name.startswith(start)))
        wanted = {distribution(name, known) for name in imported(module.tree)} - {None}
        assert wanted <= allowed, f"{module.path} imports {sorted(map(str, wanted - allowed))}"
