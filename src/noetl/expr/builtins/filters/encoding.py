"""Filters that encode, decode and hash.

Tested in tests/unit/expr/builtins/test_filters.py.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote_from_bytes

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import SLOT, Context
from noetl.expr.runtime.iteration import number
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import kind_of, shown

_MOST_INDENT: Final = 16
_HASHES: Final = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")


def tojson(
    context: Context, value: Any, indent: int | None = None, sort_keys: bool = False, ensure_ascii: bool = True
) -> str:
    """Serialize as JSON, on one line or indented."""
    if isinstance(value, Undefined):
        value.fail()
    weight = context.budget.weigh(value)
    context.spend(20 + weight.size // SLOT)
    if indent is not None:
        context.produce(weight.size // SLOT * weight.depth * number("indent", indent, _MOST_INDENT))
    try:
        text = json.dumps(value, indent=indent, sort_keys=sort_keys, ensure_ascii=ensure_ascii, default=_written)
        context.produce(max(0, len(text) - weight.size))  # an escape takes up to six characters
        return text
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"cannot be serialized as JSON: {error}") from None


def _written(value: Any) -> Any:
    if isinstance(value, Undefined):
        value.fail()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it contains {kind_of(value)}")


def fromjson(context: Context, value: Any) -> Any:
    """Parse JSON."""
    if isinstance(value, Undefined):
        value.fail()
    if not isinstance(value, str):
        raise EvaluationError(
            f"`fromjson` takes a string, not {kind_of(value)}", None, "it is parsed already: remove the filter"
        )
    context.spend(20 + len(value) // SLOT)
    context.produce(len(value) * 4)  # `{},` takes 72 bytes
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        raise EvaluationError(f"not valid JSON: {error.msg} at character {error.pos}") from None


def b64encode(context: Context, value: Any) -> str:
    """Encode a string in Base64."""
    data = _bytes(context, value)
    context.produce(len(data) * 4 // 3 + 4)
    return base64.b64encode(data).decode("ascii")


def b64decode(context: Context, value: Any) -> str:
    """Decode a Base64 string."""
    try:
        return base64.b64decode(_bytes(context, value), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise EvaluationError("not a Base64-encoded string") from None


def _bytes(context: Context, value: Any) -> bytes:
    text = context.text(value)
    context.produce(len(text) if text.isascii() else len(text) * 4)
    return text.encode(errors="surrogatepass")


def urlencode(context: Context, value: Any) -> str:
    """Percent-encode a string, or the pairs of a map as a query string."""
    if not isinstance(value, Mapping | list | tuple):
        return _quoted(context, value, "/")
    pairs = list(value.items()) if isinstance(value, Mapping) else list(value)
    context.spend(20 * len(pairs))
    made: list[str] = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise EvaluationError("`urlencode` takes a string, a map, or a list of pairs")
        made.append("=".join(_quoted(context, part, "").replace("%20", "+") for part in pair))
    return "&".join(made)


def _quoted(context: Context, value: Any, safe: str) -> str:
    data = _bytes(context, value)
    context.spend(20 + len(data) // 2)
    context.produce(len(data) * 3)
    return quote_from_bytes(data, safe)


def hash_(context: Context, value: Any, algorithm: Any = "sha1") -> str:
    """Hash in hexadecimal, by md5, sha1, sha224, sha256, sha384 or sha512."""
    if not isinstance(algorithm, str) or algorithm not in _HASHES:
        raise EvaluationError(f"unknown hash `{shown(algorithm)}`", None, f"use one of {', '.join(_HASHES)}")
    data = _bytes(context, value)
    context.spend(20 + len(data) // 16)
    return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()


def md5(context: Context, value: Any) -> str:
    """MD5 hash in hexadecimal."""
    return hash_(context, value, "md5")


def sha1(context: Context, value: Any) -> str:
    """SHA-1 hash in hexadecimal."""
    return hash_(context, value, "sha1")


def sha256(context: Context, value: Any) -> str:
    """SHA-256 hash in hexadecimal."""
    return hash_(context, value, "sha256")


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "b64decode": b64decode, "b64encode": b64encode, "from_json": fromjson, "fromjson": fromjson, "hash": hash_,
    "md5": md5, "sha1": sha1, "sha256": sha256, "to_json": tojson, "tojson": tojson, "urlencode": urlencode,
}  # fmt: skip
