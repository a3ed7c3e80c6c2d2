"""Packages add tool kinds; a broken package is reported and does no harm."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from inspect import iscoroutinefunction
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

import pytest

from noetl.engine.tasks.actions import Written
from noetl.model.outcome import TaskError
from noetl.ports import Runner, ToolContext
from noetl.ports.work import run_tool
from noetl.tools import GROUP, MODULES
from noetl.tools.registry import ToolKinds

GREET = '''
from typing import Annotated

from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """Whom to greet."""

    whom: Annotated[str, about("Whom to greet.", "world", aliases=("who",))]


KIND = describe(
    Input,
    name="greet",
    summary="Greets somebody.",
    description="It is polite.",
    result={"text": "The greeting."},
    examples="# Hello\\n- hello: { kind: greet, whom: world }",
)
'''


def install(folder: Path, package: str, module: str, entry: str) -> None:
    """Install a distribution with one module and one entry point into a folder."""
    code = folder / package
    code.mkdir(parents=True)
    (code / "__init__.py").write_text("")
    (code / "tool.py").write_text(module)
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{entry}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that packages are installed to."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_package_adds_a_kind(site: Path) -> None:
    install(site, "acme_greet", GREET, "greet = acme_greet.tool")
    kinds = ToolKinds(MODULES, GROUP)
    assert "greet" in kinds
    assert kinds["greet"].summary == "Greets somebody."
    assert kinds["greet"].input.names() == ("whom", "who")
    assert [*kinds] == [*MODULES, "greet"]
    assert len(kinds) == len(MODULES) + 1
    assert kinds.problems == ()


@pytest.mark.parametrize(
    ("package", "module", "entry", "reason"),
    [
        ("acme_raises", "raise RuntimeError('no licence')", "greet = acme_raises.tool", "RuntimeError: no licence"),
        ("acme_exits", "raise SystemExit('bye')", "greet = acme_exits.tool", "SystemExit: bye"),
        ("acme_syntax", "def :", "greet = acme_syntax.tool", "SyntaxError"),
        ("acme_gone", "", "greet = acme_gone.elsewhere", "No module named 'acme_gone.elsewhere'"),
        ("acme_empty", "", "greet = acme_empty.tool", "no KIND"),
        ("acme_string", "KIND = 'greet'", "greet = acme_string.tool", "no KIND"),
        ("acme_named", GREET, "hello = acme_named.tool", "another name, 'greet'"),
        ("acme_colon", GREET, "greet = acme_colon.tool:KIND", "must name a module"),
        ("acme_http", GREET.replace('"greet"', '"http"'), "http = acme_http.tool", "a built-in kind has that name"),
        (
            "acme_typed",
            GREET.replace("Annotated[str,", "Annotated[bytes,"),
            "greet = acme_typed.tool",
            "tools.greet.whom",
        ),
    ],
)
def test_a_package_whose_kind_cannot_be_used_is_told_of(
    site: Path, package: str, module: str, entry: str, reason: str
) -> None:
    install(site, package, module, entry)
    kinds = ToolKinds(MODULES, GROUP)
    assert [*kinds] == list(MODULES)
    (problem,) = kinds.problems
    assert problem.startswith(f"The tool kind '{entry.partition(' ')[0]}' of package '{package}' (")
    assert reason in problem
    assert kinds["http"].summary == "Send one HTTP request and read the response."


RUNS = """

async def run(input, context):
    return f"hello {input.whom}"
"""


@pytest.mark.parametrize("waits", [True, False])
def test_the_kind_of_a_package_is_run_by_its_own_function(site: Path, waits: bool) -> None:
    name, runs = f"acme_runs_{waits}".lower(), RUNS if waits else RUNS.replace("async def", "def")
    install(site, name, GREET + runs, f"greet = {name}.tool")
    runner = ToolKinds(MODULES, GROUP).runner("greet")
    assert runner is not None
    assert iscoroutinefunction(runner) is waits  # the runner of a kind that never waits is a plain function
    assert asyncio.run(_call(runner, {"who": "ann"})) == "hello ann"
    refused = asyncio.run(_call(runner, {"name": "ann"}))
    assert refused.error.kind == "schema"


def test_a_kind_of_a_package_may_raise_what_a_failure_means(site: Path) -> None:
    run = "\n\nasync def run(input, context):\n    from noetl import RetryableError\n    raise RetryableError('busy', retry_after=2)\n"
    install(site, "acme_busy", GREET + run, "greet = acme_busy.tool")
    runner = ToolKinds(MODULES, GROUP).runner("greet")
    assert runner is not None
    tried = runner

    async def error_of() -> TaskError | None:
        return (await run_tool(tried, {"who": "ann"}, cast(ToolContext, None))).error

    error = asyncio.run(error_of())
    assert error is not None
    assert (error.code, error.retryable, error.retry_after) == ("PY_RetryableError", True, 2.0)


async def _call(runner: Runner, fields: dict[str, str]) -> Any:
    return await run_tool(runner, fields, cast(ToolContext, None))


def test_packages_are_not_searched_for_a_kind_that_is_built_in(site: Path) -> None:
    install(site, "acme_asleep", "raise RuntimeError", "greet = acme_asleep.tool")
    kinds = ToolKinds(MODULES, GROUP)
    assert kinds["sleep"].suspends
    assert kinds.problems == ()
    assert "acme_asleep" not in sys.modules
    assert "greet" not in kinds
    assert len(kinds.problems) == 1


def test_of_two_packages_with_one_name_the_first_wins_and_the_other_is_told_of(site: Path) -> None:
    install(site, "acme_one", GREET, "greet = acme_one.tool")
    install(site, "acme_two", GREET, "greet = acme_two.tool")
    kinds = ToolKinds(MODULES, GROUP)
    assert "greet" in kinds
    (problem,) = kinds.problems
    assert "package 'acme_two'" in problem
    assert "another package has a kind of that name" in problem


def test_the_language_gets_the_kinds_of_installed_packages(tmp_path: Path) -> None:
    install(tmp_path, "acme_real", GREET, "greet = acme_real.tool")
    install(tmp_path, "acme_bad", "1 / 0", "wave = acme_bad.tool")
    code = dedent(
        """
        from noetl.wiring.embedded import kind_problems, language_kinds
        print(language_kinds()["greet"].name, "wave" in language_kinds(), len(kind_problems()))
        """
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["greet", "False", "1"]


def test_a_broken_package_is_told_of_when_its_kind_is_used_and_breaks_nothing(tmp_path: Path) -> None:
    install(tmp_path / "site", "acme_cli", GREET, "greet = acme_cli.tool")
    install(tmp_path / "site", "acme_torn", "1 / 0", "wave = acme_torn.tool")
    head = "{apiVersion: noetl.io/v10, kind: Playbook, metadata: {name: x, path: x}, workflow: [{step: s, tool: "
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    outcome = {}
    for kind in ("noop", "greet", "wave"):
        file = tmp_path / f"{kind}.yaml"
        file.write_text(f"{head}{{kind: {kind}{', who: me' if kind == 'greet' else ''}}}}}]}}\n")
        outcome[kind] = subprocess.run(
            [sys.executable, "-m", "noetl", "validate", str(file)],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
    assert (outcome["noop"].returncode, outcome["noop"].stderr) == (0, "")
    assert outcome["greet"].returncode == 0
    assert outcome["wave"].returncode == 1
    assert "The tool kind 'wave' of package 'acme_torn'" in outcome["wave"].stderr
    assert "Traceback" not in outcome["wave"].stderr


KEEPING = """
from typing import Annotated

from noetl.model.outcome import Outcome, ok
from noetl.ports import ToolContext
from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    "Whom to greet."

    whom: Annotated[str, about("Whom to greet.", "world")]
    {more}


KIND = describe(
    Input, name="greet", summary="Greets somebody.", description="It is polite.", result=None,
    examples="# Hello\\n- hello: {{ kind: greet, whom: world }}",
)


async def run(input: Input, context: ToolContext) -> Outcome:
    return ok(id(input))
"""


@pytest.mark.parametrize(
    ("more", "kept"), [("", True), ('said: Annotated[list[str], about("What was said.", ["hello"])] = []', False)]
)
def test_fields_that_never_change_are_read_once_unless_something_in_them_could(
    site: Path, more: str, kept: bool
) -> None:
    install(site, f"keeping_{kept}".lower(), KEEPING.format(more=more), f"greet = keeping_{kept}.tool".lower())
    runner = ToolKinds(MODULES, GROUP).runner("greet")
    assert runner is not None
    fields = Written({"whom": "you"})

    async def twice() -> list[Any]:
        return [(await run_tool(runner, fields, cast(ToolContext, None))).result for _ in range(2)]

    first, second = asyncio.run(twice())
    assert (first == second == id(fields.read)) is kept
