"""The corpus of templates that Jinja2 and NoETL share, as Python."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def corpus() -> dict[str, Any]:
    """Return the corpus, read once; callers must not change it."""
    loaded: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "corpus.yaml").read_text(encoding="utf-8"))
    return loaded


def data() -> dict[str, Any]:
    """The data that the templates are evaluated over."""
    found: dict[str, Any] = corpus()["data"]
    return found


def same() -> list[str]:
    """Templates with the same value in both."""
    return [source for group in corpus()["same"].values() for source in group]


def different() -> dict[str, str]:
    """Templates with another value here, and why."""
    found: dict[str, str] = corpus()["different"]
    return found
