"""Recognise names of keys, parameters and fields that hold a secret.

Two questions: a value under a name that `is_secret_name` accepts is never written where it need not be; `HiddenNames` accepts
more, because what it hides from readers is still in the log. Page and cursor tokens are not secrets. Tested in
tests/unit/dsl/test_secret_names.py and tests/unit/dsl/rules/test_tools.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_ENDINGS = (
    "password", "passwd", "_pwd", "passphrase", "api_key", "apikey", "secret_key", "secret_access_key", "private_key",
    "client_secret", "access_token", "auth_token", "bearer_token", "refresh_token", "authorization",
)  # fmt: skip
_EXACT = frozenset(
    {"token", "pwd", "secret", "bearer", "cookie", "set_cookie", "session", "sessionid", "session_id", "credentials"}
)
_OTHER_TOKENS = frozenset(
    {"next", "page", "next_page", "continuation", "cursor", "sync", "delta", "max", "start", "end", "resume", "csrf",
     "pagination"}
)  # fmt: skip
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
# The last word of a name decides: `db_password` holds a password, `password_policy` does not.
_SECRETS: Final = frozenset(
    {"password", "passwords", "passwd", "pwd", "passphrase", "secret", "secrets", "token", "auth", "authorization",
     "bearer", "credential", "credentials", "cookie", "cookies", "session", "jwt", "apikey", "sessionid", "authtoken",
     "accesstoken", "refreshtoken", "secretkey", "privatekey", "accesskey"}
)  # fmt: skip
_FUSED: Final = ("password", "passwd", "passphrase", "apikey", "secretkey", "privatekey")  # `dbpassword` is one word
_KEYS: Final = frozenset(  # words before `key` that make it a secret; `primary_key` and `object_key` are none
    {"api", "private", "secret", "access", "auth", "encryption", "decryption", "signing", "ssh", "master", "account",
     "shared", "session", "subscription", "service", "storage", "webhook", "hmac", "license", "rsa", "client"}
)  # fmt: skip
_BEHIND: Final = frozenset(  # words behind a secret's name that leave it one: `password_hash`, `token_value`
    {"value", "plain", "plaintext", "text", "hash", "hashed", "digest", "header", "headers", "old", "new", "current",
     "previous", "confirm", "confirmation", "base", "hex", "raw", "string", "file", "content"}
)  # fmt: skip


@lru_cache(maxsize=4096)
def is_secret_name(key: str) -> bool:
    """Return whether a key of this name holds a secret itself."""
    name = key.rsplit(".", 1)[-1].lower().replace("-", "_")
    if name in _EXACT or name.endswith(_ENDINGS):
        return True
    return name.endswith("_token") and name.removesuffix("_token") not in _OTHER_TOKENS


class HiddenNames:
    """Names whose values readers do not see; `more` adds names to the usual ones."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._more = tuple(found for one in more if (found := _split(one)))
        self.hides = lru_cache(maxsize=8192)(self._hides)

    def _hides(self, key: str) -> bool:
        words = _split(key[key.rfind(".") + 1 :])
        if any(words[-len(one) :] == one for one in self._more):
            return True
        while len(words) > 1 and words[-1] in _BEHIND:
            words = words[:-1]
        if not words:
            return False
        last, before = words[-1], words[-2] if len(words) > 1 else ""
        if last == "token":
            return "_".join(words[:-1]) not in _OTHER_TOKENS and before not in _OTHER_TOKENS
        if last == "key":
            return not before or before in _KEYS
        return last in _SECRETS or last.endswith(_FUSED) or (last == "id" and before == "session")


def _split(name: str) -> tuple[str, ...]:
    """Return the words of a name in snake_case, kebab-case or camelCase."""
    return tuple(word.lower() for word in _WORDS.findall(name[:_MOST]))


_MOST: Final = 200  # characters of a name that are looked at
