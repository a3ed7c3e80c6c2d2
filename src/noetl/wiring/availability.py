"""What this installation can run: kinds, stores, compressions and sources.

One answer for checks, starts and pages. Tested in tests/tools/test_availability.py.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Final

from noetl.dsl.checking.uses import What
from noetl.extras import install_command
from noetl.tools import kinds

# The module that each extra of the package installs.
LIBRARIES: Final = {"postgres": "psycopg", "duckdb": "duckdb"}
_SOURCES: Final = ("postgres", "duckdb", "file", "http")
_BUILT: Final[dict[What, tuple[str, ...]]] = {
    "store": ("auto", "inline", "db", "file", "kv"),
    "script source": ("inline", "file", "http"),
    "transfer source": _SOURCES,
    "transfer target": _SOURCES[:-1],
}


@cache
def not_built(what: What, name: str) -> str | None:
    """Return why no process of this version can use it, or None."""
    if what != "kind":
        built = _compressions() if what == "compression" else _BUILT[what]
        return None if name in built else f"this version of NoETL has {', '.join(f'`{one}`' for one in built)}"
    known = kinds()
    return "this version of NoETL cannot run it" if name in known and not known[name].built else None


def _compressions() -> tuple[str, ...]:
    from noetl.blobs.stored import PACKINGS  # checking a playbook stores nothing

    return PACKINGS


@cache
def unavailable(what: What, name: str) -> str | None:
    """Return why this installation cannot use it and what to do, or None."""
    missing = not_built(what, name)
    if missing is not None:
        return missing
    known = kinds()
    is_kind = what in ("kind", "transfer source", "transfer target") and name in known
    extra = known[name].extra if is_kind else ""
    if extra in LIBRARIES and find_spec(LIBRARIES[extra]) is None:
        return f"its library is not installed; run `{install_command(extra)}` where its worker runs"
    return None
