"""The secret values that a process knows, and the mask over them in any encoding.

Only whole values are masked: else data that a task makes up would show how a secret begins. A short value is not masked
by value, because it occurs in innocent text. Tested in tests/unit/worker/secrets/test_redact.py, and that the fields of all
types of credentials are known here in tests/server/auth/test_credential_types.py.
"""

from __future__ import annotations

import json
import logging
import math
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from noetl.dsl.secret_names import is_secret_name
from noetl.masking.matcher import Matcher

MASK: Final = "(masked secret)"
LEAST: Final = 6  # characters of a value that is masked everywhere; shorter ones occur in innocent text
_MOST: Final = 10_000  # remembered values; tokens change
_LINE: Final = 16  # characters of a line of a longer secret, such as a key file
_LARGEST: Final = 1e308  # of the numbers that are floats
_PUBLIC: Final = frozenset((  # fields of a credential, and of a token's answer, that are no secret
    "host", "hostname", "port", "user", "username", "login", "db_host", "db_port", "db_user", "db_name", "dbname",
    "database", "db", "schema", "sslmode", "kind", "type", "header", "scheme", "base_url", "endpoint",
    "token_url", "auth_url", "scope", "scopes", "region", "account", "warehouse", "role", "project", "project_id",
    "client_id", "client_email", "tenant", "tenant_id", "audience", "grant_type", "name", "expires_in",
    "expires_at", "token_type", "version", "provider", "bucket", "path", "method", "ttl_seconds", "auto_renew",
    "in", "prefix", "location", "test_url", "token_uri", "auth_uri", "authority", "endpoint_url", "account_name", "url_style",
    "authenticator", "universe_domain", "file", "mount", "namespace", "auth_method", "resource", "answer", "servers",
    "nats_url", "nats_user", "access_key_id", "aws_access_key_id", "key_id", "private_key_id", "aws_region", "region_name",
    "sf_account", "sf_user", "sf_database", "sf_schema", "sf_warehouse", "sf_role", "auth_provider_x509_cert_url",
    "client_x509_cert_url", "metadata_url", "target_audience", "expires_on", "ext_expires_in", "refresh_expires_in",
    "refresh_token_expires_in", "not_before", "not_before_policy", "issued_at", "created_at",
))  # fmt: skip
_PUBLIC_URLS: Final = frozenset(
    (
        "token_url",
        "auth_url",
        "audience",
        "token_uri",
        "auth_uri",
        "authority",
        "test_url",
        "resource",
        "metadata_url",
        "target_audience",
        "auth_provider_x509_cert_url",
        "client_x509_cert_url",
    )
)  # of an identity provider: every part is known
_CONNECTION: Final = re.compile(r"\bpassword\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S+))")
_ADDRESS: Final = re.compile(r"^\w[\w+.-]*://|\b(?:host|dbname)\s*=")

_log = logging.getLogger(__name__)


class KnownValues:
    """Secret values that were resolved here."""

    def __init__(self) -> None:
        self.short: set[str] = set()
        self.numbers: set[int | float] = set()  # of a result or a payload, where 1.0 is 1
        self._values: dict[str, None] = {}
        self._found = Matcher()
        self.longest = 0  # characters of a value in any encoding

    def __bool__(self) -> bool:
        return bool(self._values)

    def learn(self, name: str, credential: Mapping[str, Any]) -> None:
        """Remember the values of a credential."""
        held = list(_held(credential))
        for field, value in held:
            if 0 < len(value) < LEAST and value not in self.short:
                self.short.add(value)
                told = (
                    "`%s` of the credential `%s` has fewer than %d characters, so it is masked only under such a name"
                )
                _log.warning(told, field, name, LEAST)
        fresh = dict.fromkeys(value for _, value in held if len(value) >= LEAST and value not in self._values)
        if not fresh:
            return
        self._values |= fresh
        if len(self._values) > _MOST:
            self._values = dict.fromkeys([*self._values][_MOST // 4 :])
            self.numbers = _numbers(self._values)
            self._found.replace(self._coded(self._values))
        else:
            self.numbers |= _numbers(fresh)
            self._found.add(self._coded(fresh))

    def _coded(self, values: Mapping[str, None]) -> Iterator[bytes]:
        for value in values:
            for one in _variants(value):
                self.longest = max(self.longest, len(one))
                yield _bytes(one)
                yield _bytes(json.dumps(one, ensure_ascii=False)[1:-1])

    def occurs(self, text: str) -> bool:
        """Return whether a text contains a value."""
        return bool(self._values) and self._found.finds(_bytes(text))

    def occurs_in_bytes(self, data: bytes) -> bool:
        """Return whether data encoded as JSON contains a value."""
        return bool(self._values) and self._found.finds(data)

    def mask(self, text: str) -> str:
        """Return a text with the mask over every value; the same object without any."""
        if not self._values:
            return text
        data = _bytes(text)
        spans = self._found.spans(data)
        if not spans:
            return text
        kept, at = [], 0
        for begin, end in spans:
            kept += [data[at:begin], _MASKED]
            at = end
        return b"".join((*kept, data[at:])).decode("utf-8", "surrogatepass")

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each value, in characters."""
        if not self._values:
            return
        data, at, count = _bytes(text), 0, 0
        for begin, end in self._found.spans(data):
            count += _characters(data[at:begin])
            yield count, count + _characters(data[begin:end])
            at, count = end, count + _characters(data[begin:end])


_MASKED: Final = MASK.encode()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _characters(data: bytes) -> int:
    return len(data.decode("utf-8", "surrogatepass"))


_in_use: list[KnownValues] = []  # of the workers and the server of this process


@contextmanager
def in_process(known: KnownValues) -> Iterator[None]:
    """Mask these values in all that this process shows or logs, meanwhile."""
    _in_use.append(known)
    try:
        yield
    finally:
        _in_use.remove(known)


def mask_known(text: str) -> str:
    """Mask the values that this process knows."""
    for known in _in_use:
        text = known.mask(text)
    return text


def any_known(data: bytes) -> bool:
    """Return whether data encoded as JSON contains a value that this process knows."""
    return any(known.occurs_in_bytes(data) for known in _in_use)


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
        elif isinstance(value, int | float) and not isinstance(value, bool) and not public:
            yield str(name), str(value)


def _numbers(values: Iterable[str]) -> set[int | float]:
    """Return the values that are the text of a number, as numbers."""
    return {number for number in map(_number, values) if number is not None}


def _number(value: str) -> int | float | None:
    """Return the number that a text is; None for 12345.0, since 12345 is short."""
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:  # no number, or too long for one
            continue
        if str(number) == value and math.isfinite(number):
            return None if number == number // 1 and len(str(int(number))) < LEAST else number
    return None


def _written(number: int | float) -> Iterator[str]:
    """Return a number as code and JSON write it; `1` and `1.0` are the same."""
    same = {str(number): number}
    if number == number // 1:
        same[str(int(number))] = int(number)
        if abs(number) < _LARGEST and float(number) == number:
            same[str(float(number))] = float(number)
    for text, one in same.items():
        yield from (coded for coded in (text, msgspec.json.encode(one).decode()) if len(coded) >= LEAST)


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
    from urllib.parse import quote, quote_plus

    data = value.encode(errors="replace")  # it may not be valid Unicode
    quoted = {quote(data), quote(data, safe=""), quote_plus(data)}
    escaped = {*_in_code(value, data), *_in_markup(value)}
    yield value
    yield from (data.hex(), data.hex().upper())
    yield from quoted | {re.sub("%..", lambda found: found[0].lower(), one) for one in quoted}
    yield from escaped | {json.dumps(one)[1:-1] for one in escaped}
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(data).decode()
        for shift, first in enumerate((0, 2, 3)):  # inside a longer text that was encoded whole: `user:password`
            coded = encode(b"\0" * shift + data).decode().rstrip("=")
            yield coded[first : len(coded) - ((shift + len(data)) % 3 != 0)]
    if "\n" in value:
        yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= _LINE)
    number = _number(value)
    if number is not None:
        yield from _written(number)


def _in_code(value: str, data: bytes) -> Iterator[str]:
    """Return a value as JSON writes it, in several languages, and Python."""
    for text in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        in_pages = text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")  # Go, Flask
        yield from (text, text.replace("/", r"\/"), in_pages, in_pages.replace("'", r"\u0027"))
    for quoted in (repr(value)[1:-1], repr(data)[2:-1]):
        plain = quoted.replace(r"\'", "'")
        yield from (plain, plain.replace("'", r"\'"))  # which of both depends on the text around it


def _in_markup(value: str) -> Iterator[str]:
    """Return a value as HTML and XML write it, with any of the usual forms of quotes."""
    text = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for double in ('"', "&quot;", "&#34;"):
        for single in ("'", "&#x27;", "&#39;", "&apos;"):
            yield text.replace('"', double).replace("'", single)
