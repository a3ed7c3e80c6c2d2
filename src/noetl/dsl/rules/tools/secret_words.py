"""Knows what secrets look like: the names of keys that hold them, values that stand for none, and well-known tokens.

Tested in tests/unit/dsl/rules/test_tools.py.
"""

from __future__ import annotations

import re
from functools import lru_cache

_ENDINGS = (
    "password", "passwd", "_pwd", "passphrase", "api_key", "apikey", "secret_key", "secret_access_key", "private_key",
    "client_secret", "access_token", "auth_token", "bearer_token", "refresh_token", "authorization",
)  # fmt: skip
_EXACT = frozenset({"token", "pwd"})
_OTHER_TOKENS = frozenset(
    {
        "next",
        "page",
        "next_page",
        "continuation",
        "cursor",
        "sync",
        "delta",
        "max",
        "start",
        "end",
        "resume",
        "csrf",
        "pagination",
    }
)
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

KNOWN = re.compile(
    r"""
    (?P<aws>\b(?:AKIA|ASIA)[0-9A-Z]{16}\b)
    | (?P<github>\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}))
    | (?P<gitlab>\bglpat-[A-Za-z0-9_-]{20,})
    | (?P<slack>\bxox[abprs]-[0-9A-Za-z-]{10,})
    | (?P<google>\bAIza[0-9A-Za-z_-]{35})
    | (?P<api>\bsk[-_](?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{20,})
    | (?P<private_key>-----BEGIN\ (?:[A-Z]+\ )*PRIVATE\ KEY)
    | (?P<jwt>\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})
    | \b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@{}'"<>$]+:(?P<url>[^\s/@{}'"<>$]+)@
    | [?&](?:api_?key|access_token|auth_token|client_secret|password|token)=(?P<query>[\w.~%+/=-]{8,})
    | \b(?:Bearer|Basic)\s+(?P<header>(?=[A-Za-z+/_.=-]*\d)[\w.+/=-]{16,})
    """,
    re.VERBOSE,
)
NAMES = {
    "aws": "an AWS access key",
    "github": "a GitHub token",
    "gitlab": "a GitLab token",
    "slack": "a Slack token",
    "google": "a Google API key",
    "api": "an API key",
    "private_key": "a private key",
    "jwt": "a signed token (JWT)",
    "url": "a password in an address",
    "query": "a secret in the query of an address",
    "header": "a credential of a request header",
}


@lru_cache(maxsize=4096)
def is_secret_name(key: str) -> bool:
    """Tell whether a key of that name holds a secret itself, not a name or a place of one."""
    name = key.rsplit(".", 1)[-1].lower().replace("-", "_")
    if name in _EXACT or name.endswith(_ENDINGS):
        return True
    return name.endswith("_token") and name.removesuffix("_token") not in _OTHER_TOKENS


def is_placeholder(value: str) -> bool:
    """Tell whether a text stands for a secret without being one."""
    text = _SCHEME.sub("", value.strip())
    return _PLACEHOLDER.fullmatch(text) is not None or _REFERENCE.search(text) is not None
