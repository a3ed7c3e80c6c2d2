"""Recognise secrets by their format, and placeholders that are not secrets.

Tested in tests/unit/dsl/rules/test_tools.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_PLACEHOLDER = re.compile(
    r"""
    \W* | [*x.•-]+ | <.*> | \[.*\] | \$\{?\w+\}? | %\w+%
    | (?:change|replace|insert|put|fill)[-_ ]?(?:me|this|it|in|here).* | (?:your|the|some|any)[-_ ].* | redacted | masked | hidden
    | dummy | placeholder | todo | tbd | none | null | n/a | .*example.*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_REFERENCE = re.compile(r"^(?:projects/|arn:|vault:|env:|file:|secret:|[a-z0-9+]+://)|/secrets?/", re.IGNORECASE)
_SCHEME = re.compile(r"^(?:bearer|basic|token|apikey|digest)\s+", re.IGNORECASE)


class Pattern(NamedTuple):
    """The format of a type of secret; the last group is the secret itself."""

    name: str
    marks: tuple[str, ...]  # fast pre-check: a text without any of these cannot match
    shape: re.Pattern[str]


_PATTERNS = (
    Pattern("an AWS access key", ("AKIA", "ASIA"), re.compile(r"\b((?:AKIA|ASIA)[0-9A-Z]{16})\b")),
    Pattern("a GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re.compile(r"\b(gh[pousr]_[A-Za-z0-9]{36,})")),
    Pattern("a GitHub token", ("github_pat_",), re.compile(r"\b(github_pat_[A-Za-z0-9_]{22,})")),
    Pattern("a GitLab token", ("glpat-",), re.compile(r"\b(glpat-[A-Za-z0-9_-]{20,})")),
    Pattern("a Slack token", ("xox",), re.compile(r"\b(xox[abprs]-[0-9A-Za-z-]{10,})")),
    Pattern("a Google API key", ("AIza",), re.compile(r"\b(AIza[0-9A-Za-z_-]{35})")),
    Pattern("an API key", ("sk-", "sk_"), re.compile(r"\b(sk[-_](?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{20,})")),
    Pattern("a private key", ("PRIVATE KEY",), re.compile(r"(-----BEGIN (?:[A-Z]+ )*PRIVATE KEY)")),
    Pattern("a signed token (JWT)", ("eyJ",), re.compile(r"\b(eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})")),
    Pattern("a password in a URL", ("://",), re.compile(r"""://[^\s/:@{}'"<>$]+:([^\s/@{}'"<>$]+)@""")),
    Pattern(
        "a secret in the query of a URL",
        ("key=", "token=", "secret=", "password="),
        re.compile(r"[?&](?:api_?key|access_token|auth_token|client_secret|password|token)=([\w.~%+/=-]{8,})"),
    ),
    Pattern(
        "a credential of a request header",
        ("Bearer ", "Basic "),
        re.compile(r"\b(?:Bearer|Basic) +((?=[A-Za-z+/_.=-]*\d)[\w.+/=-]{16,})"),
    ),
)


def known_secrets(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the type, start and end of every text that looks like a well-known secret."""
    for name, marks, shape in _PATTERNS:
        if any(mark in text for mark in marks):
            for match in shape.finditer(text):
                if not is_placeholder(match[1]):
                    yield name, match.start(1), match.end(1)


def is_placeholder(value: str) -> bool:
    """Return whether a text is a placeholder for, or a reference to, a secret."""
    text = _SCHEME.sub("", value.strip())
    return _PLACEHOLDER.fullmatch(text) is not None or _REFERENCE.search(text) is not None
