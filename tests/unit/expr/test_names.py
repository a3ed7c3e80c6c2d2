"""Formatting of paths, and suggestions for misspelt names."""

from __future__ import annotations

import pytest

from noetl.expr import dotted, nearest
from noetl.expr.names import did_you_mean


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("a",), "a"),
        (("a", "b", "c"), "a.b.c"),
        (("rows", 0, "x"), "rows[0].x"),
        (("a", "b c"), "a['b c']"),
        (("a", -1), "a[-1]"),
        ((), ""),
    ],
)
def test_dotted(path: tuple[str | int, ...], text: str) -> None:
    assert dotted(path) == text


def test_nearest() -> None:
    assert nearest("stauts", ["status", "state", "x"])[0] == "status"
    assert nearest("Status", ["status"]) == ("status",)
    assert nearest("zzz", ["status"]) == ()
    assert nearest("status", ["status", 5]) == ()
    assert nearest("x" * 1000, ["x" * 999]) == ()


def test_did_you_mean() -> None:
    assert did_you_mean(()) is None
    assert did_you_mean(("a", "b")) == "did you mean `a` or `b`?"
