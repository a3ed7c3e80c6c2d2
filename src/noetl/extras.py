"""Command that installs a missing extra. Tested in tests/unit/test_extras.py."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from shlex import join

_ROOT = Path(__file__).parents[2]


def install_command(extra: str) -> str:
    """Return the command that adds the libraries of an extra to this environment.

    It names the libraries, not NoETL: they fit whatever NoETL was installed from (a checkout, a wheel, a git address).
    """
    program = [sys.executable, "-m", "pip", "install"]
    if find_spec("pip") is None:
        program = ["uv", "pip", "install", "--python", sys.executable]
    return join([*program, *(_libraries(extra) or ("-e", f"{_ROOT}[{extra}]"))])


def _libraries(extra: str) -> list[str]:
    """Return the requirements of an extra; none where NoETL is not installed."""
    from importlib import metadata  # slow to load, and seldom needed

    try:
        requirements = metadata.requires("noetl") or []
    except metadata.PackageNotFoundError:
        return []
    marker = re.compile(rf"; *extra *== *['\"]{re.escape(extra)}['\"] *$")
    return [marker.sub("", one).strip() for one in requirements if marker.search(one)]
