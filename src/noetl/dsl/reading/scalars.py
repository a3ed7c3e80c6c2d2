"""Resolve plain scalars by the YAML 1.2 core schema.

Unlike in YAML 1.1, `yes`, `1_000`, `1:30` and dates are strings, and `012` is decimal.
Tested in tests/unit/dsl/reading/test_scalars.py.
"""

from __future__ import annotations

import re
from typing import Final

Value = None | bool | int | float | str

# Python limits the digits of integer conversions; a process may lower the limit to 640. Stay below it in every base.
MAX_NUMBER_LENGTH: Final = 500

_CONSTANTS: Final[dict[str, Value]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NUMBER_STARTS: Final = frozenset("0123456789+-.")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OTHER_BASE: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)

_LEGACY_WORDS: Final = ("yes", "no", "on", "off", "y", "n")
LEGACY_BOOLEANS: Final = frozenset(form for word in _LEGACY_WORDS for form in (word, word.capitalize(), word.upper()))

CORE_TAGS: Final = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "map", "seq")}


def resolve(text: str) -> Value:
    """Return the value of a plain scalar."""
    if text and text[0] in _NUMBER_STARTS and len(text) <= MAX_NUMBER_LENGTH:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        if _OTHER_BASE.fullmatch(text):
            return int(text, 0)
    return _CONSTANTS.get(text, text)


def is_oversize_number(text: str) -> bool:
    """Return whether a text is a number that exceeds the length limit."""
    if len(text) <= MAX_NUMBER_LENGTH or text[0] not in _NUMBER_STARTS:
        return False
    return any(pattern.fullmatch(text) for pattern in (_FLOAT, _OTHER_BASE))


def resolve_tagged(tag: str, text: str) -> Value:
    """Return the value of a scalar with a core tag; ValueError if it does not fit."""
    if tag == "str":
        return text
    value = resolve(text)
    match tag, value:
        case "null", None:
            return None
        case "bool", bool():
            return value
        case "int", int() if not isinstance(value, bool):
            return value
        case "float", float():
            return value
        case "float", int() if not isinstance(value, bool):
            return float(text) if _FLOAT.fullmatch(text) else float(value)
        case _:
            raise ValueError(f"The tag !!{tag} does not fit this value.")
