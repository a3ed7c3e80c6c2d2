"""The command that installs a missing extra."""

from __future__ import annotations

import shlex
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from noetl import extras
from noetl.extras import install_command

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
LIBRARIES = {
    "lsp": ["pygls"],
    "postgres": ["asyncpg", "psycopg[binary]"],
    "archive": ["pyarrow"],
    "duckdb": ["duckdb", "pytz"],
    "otel": ["opentelemetry-proto"],
}


@pytest.mark.parametrize("extra", LIBRARIES)
def test_it_names_the_libraries_of_the_extra_and_never_noetl(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: object())
    program, *words = shlex.split(install_command(extra))
    assert (program, words[:3]) == (sys.executable, ["-m", "pip", "install"])
    assert [word.partition("<")[0].partition(">")[0] for word in words[3:]] == LIBRARIES[extra]


def test_every_extra_has_a_command() -> None:
    assert {*EXTRAS} == {*LIBRARIES, "all"}


def test_an_environment_without_pip_uses_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert install_command("lsp").startswith(f"uv pip install --python {sys.executable} ")


def test_a_checkout_that_is_not_installed_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert shlex.split(install_command("lsp"))[-2:] == ["-e", f"{ROOT}[lsp]"]
