"""Formats of JSON Schema that `workload_schema` checks, by name; pure.

Tested in tests/unit/dsl/analysis/test_value_formats.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final
from urllib.parse import urlsplit

_CLOCK: Final = r"\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})"
_LABEL: Final = r"(?!-)[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?"


def _pattern(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _parses(parse: Callable[[str], Any], pattern: str = r"(?s:.*)") -> Callable[[str], bool]:
    matches = _pattern(pattern)

    def is_valid(text: str) -> bool:
        try:
            return matches(text) and parse(text) is not None
        except (ValueError, re.error, RecursionError, OverflowError):
            return False

    return is_valid


def _moment(text: str) -> datetime:
    """Read a moment; a leap second is one, and its fraction may have any length."""
    whole = re.sub(r"\.\d+", "", text.upper().replace(" ", "T"))
    return datetime.fromisoformat(re.sub(r"(T\d\d:\d\d):60", r"\1:59", whole))


def _uri(text: str) -> object:
    parts = urlsplit(text)
    return parts if parts.scheme and (parts.netloc or parts.path) else None


_HOST: Final = _pattern(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "date": _parses(date.fromisoformat, r"\d{4}-\d{2}-\d{2}"),
    "time": _parses(lambda text: _moment(f"2000-01-01T{text}"), _CLOCK),
    "date-time": _parses(_moment, rf"\d{{4}}-\d{{2}}-\d{{2}}[Tt ]{_CLOCK}"),
    "duration": _pattern(
        r"P(?=.)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)"
    ),
    "email": _pattern(r"[^@\s]+@[^@\s]+"),
    "idn-email": _pattern(r"[^@\s]+@[^@\s]+"),
    "hostname": lambda text: text.isascii() and _HOST(text),
    "idn-hostname": _HOST,
    "ipv4": _parses(IPv4Address),
    "ipv6": _parses(IPv6Address),
    "uri": _parses(_uri, r"[!-~]+"),
    "uri-reference": _parses(urlsplit, r"[!-~]*"),
    "iri": _parses(_uri, r"\S+"),
    "iri-reference": _parses(urlsplit, r"\S*"),
    "uuid": _pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    "json-pointer": _pattern(r"(?s:(?:/(?:[^~/]|~[01])*)*)"),
    "regex": _parses(re.compile),
}
