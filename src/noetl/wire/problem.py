"""The one shape of errors over HTTP: `application/problem+json`.

What happened, where in the request, why, and what to do. Tested in tests/server/test_problems.py.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error: `title` says what, `where` the place in the request, `detail` why, `fix` what to do."""

    type: str  # about:blank#<word>, one word per kind of error
    title: str
    status: int
    detail: str = ""
    where: str | None = None  # a JSON path such as $.payload.n, or a header's or parameter's name
    fix: str | None = None
    instance: str | None = None  # the path of the request
    errors: tuple[Any, ...] = ()  # several at once: diagnostics of a playbook
    retry_after_s: float | None = None
