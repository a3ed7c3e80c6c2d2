"""Checks small playbooks and shows what was told, with the exact text that each diagnostic underlines."""

from __future__ import annotations

from collections.abc import Collection
from textwrap import dedent
from typing import NamedTuple

from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.nodes import Source
from noetl.dsl.validate import validate
from noetl.wiring import language_kinds

KINDS = language_kinds()
HEAD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: sample, path: tests/sample }
"""


class Told(NamedTuple):
    """A code and the text under its caret."""

    code: str
    text: str


def diagnostics(body: str, catalog: Collection[str] | None = None) -> tuple[Diagnostic, ...]:
    """Check a playbook of which `body` is all but the head; rules of every group have their say."""
    return validate(HEAD + dedent(body), "sample.yaml", KINDS, catalog=catalog)


def told(body: str, catalog: Collection[str] | None = None) -> list[Told]:
    """Give every diagnostic as its code and the text that it underlines."""
    source = Source("sample.yaml", HEAD + dedent(body))
    return [
        Told(found.code, source.text[source.offset(found.start) : source.offset(found.end)])
        for found in diagnostics(body, catalog)
    ]


def message(body: str, catalog: Collection[str] | None = None) -> str:
    """Give message and fix of the only diagnostic."""
    (found,) = diagnostics(body, catalog)
    return f"{found.message} {found.fix}"
