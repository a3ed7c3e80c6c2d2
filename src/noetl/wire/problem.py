"""The format of HTTP errors. Tested in tests/server/http/test_problems.py."""

from __future__ import annotations

from typing import Any

import msgspec


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as `application/problem+json`.

    `title` and `detail` say what happened, `where` names the place in the request, `fix` what to do.
    """

    type: str  # about:blank#<word>, one word per kind of error
    title: str
    status: int
    detail: str = ""
    where: str | None = None  # a JSON path such as $.payload.n, or the name of a header or parameter
    fix: str | None = None
    instance: str | None = None  # the path of the request
    errors: tuple[Any, ...] = ()  # diagnostics of a playbook
    retry_after_s: float | None = None
