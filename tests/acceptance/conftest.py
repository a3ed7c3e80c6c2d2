"""Fixture of acceptance tests: an empty folder to run commands in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.running import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)
