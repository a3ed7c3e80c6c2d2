"""What this installation can run, from one place, as the pages say it."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from noetl.dsl.explain.pages import kind_page
from noetl.extras import install_command
from noetl.tools import kinds
from noetl.wiring.availability import LIBRARIES, not_built, unavailable
from noetl.wiring.embedded import cannot_run

EXTRAS = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for library in LIBRARIES.values():
        monkeypatch.setitem(sys.modules, library, None)
    unavailable.cache_clear()
    yield
    unavailable.cache_clear()


def test_a_kind_is_built_exactly_if_something_runs_it() -> None:
    assert {name for name in kinds() if not kinds()[name].built} == set(cannot_run(kinds()))


def test_every_extra_that_a_page_names_exists_and_its_library_is_known() -> None:
    extras = {kind.extra for kind in kinds().values() if kind.extra}
    assert extras <= set(EXTRAS)
    assert extras == set(LIBRARIES)
    for extra, library in LIBRARIES.items():
        assert any(requirement.startswith(library) for requirement in EXTRAS[extra])


def test_a_page_says_what_its_kind_needs() -> None:
    assert "needs the extra `duckdb`" in kind_page(kinds()["duckdb"])
    assert "cannot run it" in kind_page(kinds()["snowflake"])


@pytest.mark.parametrize("name", ["postgres", "duckdb"])
def test_a_missing_library_is_named_with_its_extra(no_library: None, name: str) -> None:
    for what in ("kind", "transfer source", "transfer target"):
        assert install_command(name) in str(unavailable(what, name))
    assert not_built("kind", name) is None


def test_an_installed_library_and_a_plain_kind_are_available() -> None:
    for name in ("postgres", "duckdb", "http", "wait", "workbook"):
        assert unavailable("kind", name) is None


def test_names_that_this_version_does_not_have() -> None:
    assert "cannot run it" in str(unavailable("kind", "snowflake"))
    assert "`db`" in str(unavailable("store", "s3"))
    assert "`gzip`" in str(unavailable("compression", "zstd"))
    assert "`http`" in str(unavailable("script source", "gcs"))
    assert "`file`" in str(unavailable("transfer target", "http"))
    for what, name in (
        ("store", "db"),
        ("compression", "gzip"),
        ("script source", "http"),
        ("transfer source", "http"),
    ):
        assert unavailable(what, name) is None
