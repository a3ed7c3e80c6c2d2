"""The version that a writer expects. Tested in tests/conformance/test_catalog.py."""

from __future__ import annotations

from noetl.model.errors import Conflict


def require_expected(path: str, expected: int | None, latest: int) -> None:
    """Compare the latest version of a path with the expected one. Raises Conflict."""
    if expected in (None, latest):
        return
    found = (
        f"The latest version of `{path}` is {latest}, not {expected}."
        if latest
        else f"There is no version of `{path}`."
    )
    raise Conflict(f"{found} Read what is there, and register your text with `expected: {latest}`.")
