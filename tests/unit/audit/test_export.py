"""Exports of the audit trail: a changed, removed, added or moved line is named."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from noetl.audit.chain import Head, digest_of, extend
from noetl.model.errors import InvalidInput
from noetl.ports import AuditEntry
from noetl.server.operations.audit import link_row, verify_lines

_encode = msgspec.json.encode


def export() -> list[bytes]:
    """The lines of an export with five entries."""
    made = [
        AuditEntry(at, "ada", "x.y", f"e{at}", {"n": at, "a": "ü"}, at, "version 1", "version 2") for at in range(1, 6)
    ]
    chained, head = extend(Head(), [(one, digest_of(one)) for one in made])
    return [*(_encode(link_row(one)) for one in chained), _encode({"head": head})]


def test_an_export_is_verified_without_its_store() -> None:
    found = verify_lines([*export(), b"\n"])
    assert (found.is_intact, found.entries) == (True, 5)
    assert verify_lines(export(), f"5:{found.head.hash}").is_intact
    assert verify_lines([_encode({"head": Head()})]).is_intact


TAMPERED: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str, int]] = {
    "changed": (lambda lines: [lines[0].replace(b"ada", b"eve"), *lines[1:]], "changed", 1),
    "reference": (lambda lines: [lines[0].replace(b"version 1", b"version 9"), *lines[1:]], "changed", 1),
    "renumbered": (lambda lines: [lines[0].replace(b'"number":1', b'"number":9'), *lines[1:]], "reordered", 1),
    "removed": (lambda lines: [*lines[:2], *lines[3:]], "deleted", 3),
    "cut": (lambda lines: [*lines[:3], lines[-1]], "deleted", 4),
    "twice": (lambda lines: [*lines[:2], lines[1], *lines[2:]], "inserted", 2),
    "moved": (lambda lines: [lines[1], lines[0], *lines[2:]], "deleted", 1),
    "no place": (lambda lines: [lines[0].replace(b'"position":1', b'"position":0'), *lines[1:]], "inserted", 0),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_done_to_a_line_is_named(what: str) -> None:
    change, reason, position = TAMPERED[what]
    found = verify_lines(change(export()))
    assert found.broken is not None
    assert (found.broken.reason, found.broken.position) == (reason, position)


@pytest.mark.parametrize(
    "lines", [[], export()[:-1], [b"{"], [b"[]"], [b"\xff"], [b'{"head": 1}'], [*export(), export()[0]]]
)
def test_what_is_no_export_is_refused(lines: list[bytes]) -> None:
    with pytest.raises(InvalidInput):
        verify_lines(lines)
