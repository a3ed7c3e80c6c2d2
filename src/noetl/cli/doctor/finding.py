"""What a check of `noetl doctor` found, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

OK, WARNING, PROBLEM = "ok", "warning", "problem"


class Finding(NamedTuple):
    """Result of one check."""

    check: str
    status: str  # ok, warning, problem
    found: str
    fix: str = ""


def ok(check: str, found: str) -> Finding:
    """Return that a check found nothing wrong."""
    return Finding(check, OK, found)


def warning(check: str, found: str, fix: str) -> Finding:
    """Return what works now and may not for long."""
    return Finding(check, WARNING, found, fix)


def problem(check: str, found: str, fix: str) -> Finding:
    """Return what does not work."""
    return Finding(check, PROBLEM, found, fix)
