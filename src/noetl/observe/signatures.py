"""Signatures: the shape of data and of a task's call, without values.

Logs and traces show these instead of what was sent. Tested in tests/unit/observe/test_signatures.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from noetl.masking.texts import mask_urls

_MOST: Final = 300  # characters
_DEEP: Final = 3
_WIDE: Final = 20  # keys of a map
_HOLE: Final = re.compile(r"\{\{\s*(.*?)\s*\}\}|\{%.*?%\}", re.DOTALL)
_NAME: Final = re.compile(r"[\w.]{1,60}")
_USER: Final = re.compile(r"//[^/@?#]*@")
_STATEMENT: Final = re.compile(r"\s*(?:(?:--[^\n]*\n|/\*.*?\*/)\s*)*([A-Za-z]+)", re.DOTALL)


def signature_of(data: Any) -> str:
    """Return the shape of data: its keys, and the types of its values."""
    return _shape(data, 0)[:_MOST]


def _shape(data: Any, depth: int) -> str:
    if isinstance(data, Mapping):
        if depth == _DEEP:
            return "{…}"
        shown = [f"{key}: {_shape(value, depth + 1)}" for key, value in [*data.items()][:_WIDE]]
        return "{" + ", ".join([*shown, *(["…"] if len(data) > _WIDE else [])]) + "}"
    if isinstance(data, list | tuple):
        return f"[{_shape(data[0], depth + 1)}]" if data and depth < _DEEP else "[]" if not data else "[…]"
    return "null" if data is None else type(data).__name__


def call_signature(kind: str, fields: Mapping[str, Any]) -> str:
    """Return what a task calls, from its fields as the playbook has them.

    A URL has the names of its templates, and neither query nor user; a statement is its first word.
    """
    url, table = fields.get("url"), fields.get("table")
    if isinstance(url, str):
        return f"{_text(fields.get('method')) or 'GET'} {_address(url)}"[:_MOST]
    if isinstance(table, str):
        return f"{_text(fields.get('mode')) or 'write'} {_holes(table)}"[:_MOST]
    for name in ("command", "query", "sql"):
        found = (
            _STATEMENT.match(fields[name])
            if kind not in ("shell", "container") and isinstance(fields.get(name), str)
            else None
        )
        if found is not None:
            return found[1].upper()[:_MOST]
    return ", ".join(sorted(fields))[:_MOST]


def _text(value: Any) -> str:
    return _holes(value) if isinstance(value, str) else ""


def _address(url: str) -> str:
    shown = _holes(url)
    return _USER.sub("//", mask_urls(shown.partition("?")[0].partition("#")[0]))


def _holes(text: str) -> str:
    """Return a text with `{name}` for each template."""
    return _HOLE.sub(lambda found: f"{{{found[1]}}}" if found[1] and _NAME.fullmatch(found[1]) else "{…}", text)
