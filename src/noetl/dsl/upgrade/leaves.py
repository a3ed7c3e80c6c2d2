"""New text for a concrete syntax tree: keys and values that are not in the source.

A leaf refers to a text by offsets, so new text is appended to a copy of the source.
Tested in tests/unit/dsl/upgrade/test_upgrade.py.
"""

from __future__ import annotations

import json
import re
from typing import Final

import yaml

from noetl.dsl.formatter.cst import Leaf
from noetl.dsl.reading.nodes import Scalar

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_ ./-]*[A-Za-z0-9_/]|[A-Za-z_]")


class Leaves:
    """The source with the new text behind it."""

    def __init__(self, source: str) -> None:
        self._parts = [source, "\n"]
        self._length = len(source) + 1

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def of(self, scalar: Scalar) -> Leaf:
        """Return the leaf of a value."""
        value = scalar.value
        if not isinstance(value, str):
            return self._add("null" if value is None else json.dumps(value), "", scalar.text)
        if "\n" in value and scalar.style in ("|", ">") and _fits_a_block(value):
            lines = "\n".join(f"  {line}" if line else "" for line in value.removesuffix("\n").split("\n"))
            header = "|" if value.endswith("\n") else "|-"
            return self._add(f"{header}\n{lines}\n", "|", value)
        return self.text_of(value)

    def text_of(self, value: str) -> Leaf:
        """Return the leaf of a text, in quotes where it needs them."""
        if _is_plain(value):
            return self._add(value, "", value)
        if "\n" not in value and "'" not in value and ('"' in value or "\\" in value) and value.isprintable():
            return self._add(f"'{value}'", "'", value)
        return self._add(json.dumps(value, ensure_ascii=not value.replace("\n", "").isprintable()), '"', value)

    def _add(self, written: str, style: str, value: str) -> Leaf:
        start = self._length
        self._parts += [written, "\n"]
        self._length += len(written) + 1
        return Leaf(start, start + len(written), style, "", value)


def _is_plain(value: str) -> bool:
    """Return whether a text needs no quotes, in YAML 1.1 either."""
    if _PLAIN.fullmatch(value) is None or value.casefold() in ("yes", "no", "on", "off", "y", "n"):
        return False
    return bool(yaml.safe_load(value) == value)


def _fits_a_block(value: str) -> bool:
    body = value.removesuffix("\n")
    return bool(body) and body[0] not in " \t\n" and not body.endswith(("\n", " ", "\t")) and "\r" not in body
