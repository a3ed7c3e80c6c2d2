"""Print text so that data cannot control the terminal.

Names, messages, log lines and results may hold escape sequences, and characters that reorder what is shown. They are
printed as escapes such as `\\x1b` and `\\u202e`. Inside JSON the second form means the same as the character. Tested in
tests/acceptance/test_terminal.py.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import typer

# C0 without tab and line feed, DEL and C1, separators of lines, bidirectional controls, surrogates without a partner.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Styled(str):
    """Text with colours that `style` made; its own controls are escaped."""


def escaped(text: str) -> str:
    """Return a text with its control characters as escapes."""
    return _CONTROLS.sub(_escape, text)


def one_line(text: str) -> str:
    """Return a text with its line feeds as escapes: data cannot begin another line."""
    return text.replace("\n", "\\x0a")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"


def style(text: str, **how: Any) -> Styled:
    """Return escaped text in colours, for `echo`."""
    return Styled(typer.style(escaped(text), **how))


def echo(*parts: str, err: bool = False, nl: bool = True) -> None:
    """Print the parts of a line, or of several: escaped, unless they are styled."""
    typer.echo("".join(part if isinstance(part, Styled) else escaped(part) for part in parts), err=err, nl=nl)


def echo_document(content: str | bytes, *, nl: bool = False) -> None:
    """Print a document: escaped on a terminal, unchanged into a pipe or a file."""
    if sys.stdout.isatty():
        content = escaped(content if isinstance(content, str) else content.decode("utf-8", "replace"))
    typer.echo(content, nl=nl)
