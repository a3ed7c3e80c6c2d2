"""Mask texts for people by name: `password=…`, `Cookie: …`, passwords in URLs.

Every pattern takes time that grows with the text only. Tested in tests/unit/worker/secrets/test_redact.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from noetl.dsl.secret_names import is_secret_name
from noetl.masking.values import MASK

HINTS: Final = (  # a text without any of these names no secret
    "pass", "pwd", "token", "key", "secret", "auth", "cookie", "session", "credential", "bearer", "jwt",
)  # fmt: skip
_NAMED: Final = re.compile(  # a name is taken whole: else a long word takes time with the square of its length
    r"""(?<![\w-])([\w-]++)(\\?["']?\s*[:=]\s*\\?["']?)((?:(?:bearer|basic|token)\s+)?[^\s"',;&}\])\\]+)""",
    re.IGNORECASE,
)
_COOKIE: Final = re.compile(r"""((?:set-)?cookie\\?["']?\s*[:=]\s*\\?["']?)([^\s"'\\][^\r\n"'\\]*)""", re.IGNORECASE)
_BEARER: Final = re.compile(r"\b(bearer\s+)[\w.~+/=-]{16,}", re.IGNORECASE)
_LEAST_WORD: Final = 8  # `unexpected token: end` and `session: closed` contain no secret
_WORDS: Final = ("token", "secret", "session", "credentials", "bearer")
_ALONE: Final = ("key", "auth", "credential")
_ACCESS: Final = re.compile(r"(\w://[^\s/:@]*:)[^\s/@]+(@)")
_QUERY: Final = re.compile(r"([?&;])([\w.-]+)=([^&;\s#\"']+)")
_QUOTED: Final = re.compile(  # a member of JSON inside a text, which may be escaped itself
    r"""((\\*["'])([\w.-]{1,200})\2\s*:\s*)(\\*["'])((?:(?!\4).){1,100000})(\4)""", re.DOTALL
)
_MASKED: Final = MASK.split()[0]
_REFERENCES: Final = ("$(", "${")  # a command or a variable that has the secret
IsSecret = Callable[[str], bool]


def mask_text(text: str, is_secret: IsSecret = is_secret_name, *, has_more: bool = False) -> str:
    """Mask a line or a message for people by name; `has_more`: by unusual names too."""
    found = mask_urls(text)
    lower = found.lower()
    if not has_more and not _hints(lower):
        return found
    found = _QUERY.sub(lambda match: _parameter(match, is_secret), found)
    found = _BEARER.sub(rf"\1{MASK}", _NAMED.sub(lambda match: _behind(match, is_secret), found))
    return _COOKIE.sub(rf"\1{MASK}", found) if "cookie" in lower else found


def mask_urls(text: str) -> str:
    """Mask the passwords of URLs in a text."""
    return _ACCESS.sub(rf"\1{MASK}\2", text) if "://" in text else text


def mask_data_text(text: str, is_secret: IsSecret, *, has_more: bool = False) -> str:
    """Mask a text that is data: URLs, tokens of headers, members of JSON in it.

    Prose such as `password: see below` stays.
    """
    found = mask_urls(text)
    lower = found.lower()
    if not has_more and not _hints(lower):
        return found
    if "=" in found:
        found = _QUERY.sub(lambda match: _parameter(match, is_secret), found)
    found = _BEARER.sub(rf"\1{MASK}", found) if "bearer" in lower else found
    return _QUOTED.sub(lambda match: _member(match, is_secret), found) if ":" in found else found


def _hints(lower: str) -> bool:
    for hint in HINTS:  # noqa: SIM110  `any` takes twice as long, and this is asked for each text of an answer
        if hint in lower:
            return True
    return False


def _behind(match: re.Match[str], is_secret: IsSecret) -> str:
    name, between, value = match[1], match[2], match[3]
    if not is_secret(name) or value.startswith((_MASKED, *_REFERENCES)):
        return match[0]
    is_word = name.lower().endswith(_WORDS) or name.lower() in _ALONE
    return match[0] if is_word and len(value) < _LEAST_WORD else f"{name}{between}{MASK}"


def _parameter(match: re.Match[str], is_secret: IsSecret) -> str:
    is_open = is_secret(match[2]) and not match[3].startswith(_MASKED)
    return f"{match[1]}{match[2]}={MASK}" if is_open else match[0]


def _member(match: re.Match[str], is_secret: IsSecret) -> str:
    is_open = is_secret(match[3]) and not match[5].startswith(("(secret)", _MASKED))
    return f"{match[1]}{match[4]}{MASK}{match[6]}" if is_open else match[0]
