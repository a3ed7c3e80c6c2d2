"""Mask secrets in everything that a worker reports, and in its own log lines.

Reports are log lines of tasks, results, errors, recorded values and the state of a pipeline. A worker learns the values of every
credential that it resolves and masks them wherever they occur, also in common encodings. A short value is masked only
under the name of a secret. Lines and messages for people are masked by name too, whatever was resolved. Only whole values
are masked: else data that a task makes up would show how a secret begins. So texts are masked before they are cut, and
who must cut first says where, to lose what may be half a secret. Tasks of the same pipeline still see the real value;
everything that leaves the worker, and so the log and every state derived from it, has the mask. Tested in tests/unit/worker/secrets/test_redact.py.
"""

from __future__ import annotations

import json
import logging
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import msgspec

from noetl.dsl.secret_names import is_secret_name
from noetl.model.outcome import Outcome
from noetl.ports.work import Cut

MASK: Final = "(masked secret)"
LEAST: Final = 6  # characters of a value that is masked everywhere; shorter ones occur in innocent text
_MOST: Final = 10_000  # remembered values; tokens change
_LINE: Final = 16  # characters of a line of a longer secret, such as a key file
_HINTS: Final = (  # a text without any of these names no secret
    "pass", "pwd", "token", "key", "secret", "auth", "cookie", "session", "credentials", "bearer",
)  # fmt: skip
_NAMED: Final = re.compile(  # a name is taken whole: else a long word takes time with the square of its length
    r"""(?<![\w-])([\w-]++)(\\?["']?\s*[:=]\s*\\?["']?)((?:(?:bearer|basic|token)\s+)?[^\s"',;&}\])\\]+)""",
    re.IGNORECASE,
)
_COOKIE: Final = re.compile(r"""((?:set-)?cookie\\?["']?\s*[:=]\s*\\?["']?)([^\s"'\\][^\r\n"'\\]*)""", re.IGNORECASE)
_BEARER: Final = re.compile(r"\b(bearer\s+)[\w.~+/=-]{16,}", re.IGNORECASE)
_LEAST_WORD: Final = 8  # `unexpected token: end` and `session: closed` contain no secret
_WORDS: Final = ("token", "secret", "session", "credentials", "bearer")
_SET_COOKIE: Final = "set-cookie"
_ACCESS: Final = re.compile(r"(\w://[^\s/:@]*:)[^\s/@]+(@)")
_QUERY: Final = re.compile(r"([?&;])([\w.-]+)=([^&;\s#\"']+)")
_PUBLIC: Final = frozenset((  # fields of a credential that are no secret by themselves
    "host", "hostname", "port", "user", "username", "login", "db_host", "db_port", "db_user", "db_name", "dbname",
    "database", "db", "schema", "sslmode", "kind", "type", "header", "scheme", "base_url", "endpoint",
    "token_url", "auth_url", "scope", "scopes", "region", "account", "warehouse", "role", "project", "project_id",
    "client_id", "client_email", "tenant", "tenant_id", "audience", "grant_type", "name", "expires_in",
    "expires_at", "token_type", "version", "provider", "bucket", "path", "method", "ttl_seconds", "auto_renew",
    "in", "prefix", "location", "test_url", "token_uri", "auth_uri", "authority", "endpoint_url", "account_name", "url_style",
    "authenticator", "universe_domain",
))  # fmt: skip
_PUBLIC_URLS: Final = frozenset(
    ("token_url", "auth_url", "audience", "token_uri", "auth_uri", "authority", "test_url")
)  # of an identity provider: every part is known
_CONNECTION: Final = re.compile(r"\bpassword\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S+))")
_ADDRESS: Final = re.compile(r"^\w[\w+.-]*://|\b(?:host|dbname)\s*=")
Message = TypeVar("Message", bound=msgspec.Struct)

_log = logging.getLogger(__name__)


class Secrets:
    """The secrets that a worker has resolved, and the mask over them."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self._short: set[str] = set()
        self._sees_cookies = False
        self._texts: re.Pattern[str] | None = None
        self._bytes: re.Pattern[bytes] | None = None
        self._longest = 0  # characters of a value in any encoding

    def learn(self, name: str, credential: Mapping[str, Any]) -> None:
        """Remember the values of a credential."""
        held = list(_held(credential))
        for field, value in held:
            if 0 < len(value) < LEAST and value not in self._short:
                self._short.add(value)
                told = (
                    "`%s` of the credential `%s` has fewer than %d characters, so it is masked only under such a name"
                )
                _log.warning(told, field, name, LEAST)
        fresh = [value for _, value in held if len(value) >= LEAST and value not in self._values]
        if not fresh:
            return
        known = dict.fromkeys([*self._values, *fresh][-_MOST:])
        variants = sorted({one for value in known for one in _variants(value)}, key=len, reverse=True)
        texts = re.compile("|".join(map(re.escape, variants)))
        escaped = dict.fromkeys(json.dumps(one, ensure_ascii=False)[1:-1].encode(errors="replace") for one in variants)
        self._bytes = re.compile(b"|".join(map(re.escape, escaped)))
        self._values, self._texts, self._longest = known, texts, len(variants[0])

    def learn_response(self, helper: Mapping[str, Any]) -> None:
        """Mask `set-cookie` from now on, once a response has set one.

        By name, not by value: most responses of some servers set a new one.
        """
        if not self._sees_cookies:
            self._sees_cookies = _SET_COOKIE in (helper.get("headers") or ())

    def holds(self, value: Any) -> bool:
        """Return whether a value contains a resolved secret."""
        if self._texts is None:
            return False
        if isinstance(value, str):
            return self._texts.search(value) is not None
        if isinstance(value, Mapping):
            return any(map(self.holds, value)) or any(map(self.holds, value.values()))
        return isinstance(value, list | tuple) and any(map(self.holds, value))

    def may_be_in(self, data: bytes) -> bool:
        """Return whether data encoded as JSON may contain a secret."""
        if self._short:
            return True
        if self._bytes is not None and self._bytes.search(data) is not None:
            return True
        return self._sees_cookies and b'"set-cookie"' in data

    def text(self, text: str, cut: Cut = "") -> str:
        """Mask a text for people: resolved values, values by name, passwords in URLs.

        `cut` says where the caller cut it: as many characters as half a secret may have are left out there.
        """
        found = self._by_value(self._whole(text, cut) if cut else text)
        if "://" in found:
            found = _ACCESS.sub(rf"\1{MASK}\2", found)
        lower = found.lower()
        if not any(hint in lower for hint in _HINTS):
            return found
        found = _BEARER.sub(rf"\1{MASK}", _NAMED.sub(_behind, _QUERY.sub(_parameter, found)))
        return _COOKIE.sub(rf"\1{MASK}", found) if "cookie" in lower else found

    def value(self, value: Any) -> Any:
        """Mask plain data; data without secrets stays the same object."""
        if isinstance(value, str):
            return self._by_value(value)
        if isinstance(value, Mapping):
            made = {self.value(key): self._under(key, item) for key, item in value.items()}
            same = len(made) == len(value) and all(key in made and made[key] is item for key, item in value.items())
            return value if same else made
        if isinstance(value, list | tuple):
            items = [self.value(item) for item in value]
            return value if all(one is other for one, other in zip(items, value, strict=True)) else items
        return value

    def _by_value(self, text: str) -> str:
        return text if self._texts is None else self._texts.sub(MASK, text)

    def _whole(self, text: str, cut: Cut) -> str:
        """Return what is surely whole of a cut text, without what may be half a secret."""
        if self._texts is None:
            return text
        edge = max(0, len(text) - self._longest) if cut == "end" else min(len(text), self._longest)
        for found in self._texts.finditer(text):
            if found.start() < edge < found.end():  # it is masked as a whole
                edge = found.end() if cut == "end" else found.start()
                break
        return text[:edge] if cut == "end" else text[edge:]

    def _under(self, key: Any, value: Any) -> Any:
        if key == _SET_COOKIE and self._sees_cookies and isinstance(value, str):
            return MASK
        short = isinstance(value, str | int) and not isinstance(value, bool) and str(value) in self._short
        return MASK if short and isinstance(key, str) and is_secret_name(key) else self.value(value)

    def outcome(self, outcome: Outcome) -> Outcome:
        """Mask the texts of an error, which people read."""
        error = outcome.error
        if error is None:
            return outcome
        message, details, where = self.text(error.message), self._texts_of(error.details), self._texts_of(error.where)
        if (message, details, where) == (error.message, error.details, error.where):
            return outcome
        masked = msgspec.structs.replace(error, message=message, details=details, where=where)
        return msgspec.structs.replace(outcome, error=masked)

    def _texts_of(self, value: Any) -> Any:
        """Mask every text of plain data as a text for people."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self._texts_of(item) for key, item in value.items()}
        return [self._texts_of(item) for item in value] if isinstance(value, list | tuple) else value

    def message(self, message: Message) -> Message:
        """Mask a report; one without secrets is returned unchanged."""
        if not self._values and not self._short and not self._sees_cookies:
            return message
        try:
            if not self.may_be_in(msgspec.json.encode(message)):
                return message
        except (TypeError, ValueError, OverflowError, RecursionError):
            pass  # not plain data: its receiver refuses it
        plain = msgspec.to_builtins(message)
        masked = self.value(plain)
        return message if masked is plain else msgspec.convert(masked, type(message))


_in_use: list[Secrets] = []  # of the workers of this process


@contextmanager
def in_log_lines(secrets: Secrets) -> Iterator[None]:
    """Mask these secrets in the log lines of this process too, meanwhile."""
    _in_use.append(secrets)
    try:
        yield
    finally:
        _in_use.remove(secrets)


def log_line(text: str) -> str:
    """Mask a log line of this process, or several: by name, and what its workers know."""
    for secrets in (Secrets(), *_in_use):
        text = secrets.text(text)
    return text


def _behind(match: re.Match[str]) -> str:
    name, between, value = match[1], match[2], match[3]
    if not is_secret_name(name) or value.startswith(MASK.split()[0]):
        return match[0]
    is_word = name.lower().endswith(_WORDS)
    return match[0] if is_word and len(value) < _LEAST_WORD else f"{name}{between}{MASK}"


def _parameter(match: re.Match[str]) -> str:
    is_open = is_secret_name(match[2]) and not match[3].startswith(MASK.split()[0])
    return f"{match[1]}{match[2]}={MASK}" if is_open else match[0]


def _held(credential: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the secret values of a credential, each with the name of its field."""
    for name, value in credential.items():
        public = str(name).lower().replace("-", "_") in _PUBLIC
        if isinstance(value, Mapping):
            yield from _held(value)
        elif isinstance(value, list | tuple):
            for item in value:
                yield from _held(item if isinstance(item, Mapping) else {name: item})
        elif isinstance(value, str):
            inside, is_url = list(_inside(value)), value.startswith(("http://", "https://"))
            yield from ((str(name), one) for one in inside)
            if is_url and str(name).lower() not in _PUBLIC_URLS:
                yield from ((str(name), one) for one in _in_url(value, public))
            elif not public and (inside or not _ADDRESS.search(value)):
                yield str(name), value
        elif isinstance(value, int) and not isinstance(value, bool) and not public:
            yield str(name), str(value)


def _in_url(url: str, public: bool) -> Iterator[str]:
    """Return the secret parts of a URL: a web hook's is a secret as a whole.

    Of one that is known, such as the address of an API, only long parts are: a token in the path or in the query.
    """
    from urllib.parse import parse_qsl, urlsplit

    try:
        parts = urlsplit(url)
    except ValueError:  # no URL that can be split
        yield from () if public else (url,)
        return
    path = url.partition(parts.netloc)[2]
    if path.strip("/") and not public:
        yield url
        yield from (path,) if len(path) >= _LINE else ()
    yield from (part for part in parts.path.split("/") if len(part) >= _LINE)
    yield from (one for name, one in parse_qsl(parts.query) if len(one) >= _LINE or is_secret_name(name))


def _inside(text: str) -> Iterator[str]:
    from urllib.parse import unquote, urlsplit

    try:
        password = urlsplit(text).password if "://" in text else None
    except ValueError:
        password = None
    if password:
        yield from {password, unquote(password)}
    for match in _CONNECTION.finditer(text):
        yield re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2]


def _variants(value: str) -> Iterator[str]:
    import html  # only where something was resolved: it is slow to load
    from urllib.parse import quote, quote_plus

    data = value.encode(errors="replace")  # it may not be valid Unicode
    quoted = {quote(data), quote(data, safe=""), quote_plus(data)}
    escaped = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    escaped |= {html.escape(value), repr(value)[1:-1]}
    yield value
    yield from quoted | {re.sub("%..", lambda found: found[0].lower(), one) for one in quoted}
    yield from escaped | {json.dumps(one)[1:-1] for one in escaped}
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(data).decode()
        for shift, first in enumerate((0, 2, 3)):  # inside a longer text that was encoded whole: `user:password`
            coded = encode(b"\0" * shift + data).decode().rstrip("=")
            yield coded[first : len(coded) - ((shift + len(data)) % 3 != 0)]
    if "\n" in value:
        yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= _LINE)
