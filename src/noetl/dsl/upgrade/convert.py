"""Upgrade a playbook: lower it, write the lowered tree, prove it the same.

A text is upgraded only if the new one has the same canonical tree, all comments, and no older form. The new text has the
layout of the formatter. Tested in tests/unit/dsl/upgrade/test_upgrade.py and tests/dialects.
"""

from __future__ import annotations

import json
import re
from typing import Final

from msgspec import Struct
from yaml import YAMLError

from noetl.dsl.checking.shape import findings
from noetl.dsl.dialects.lowering import Change, Lowered, Refusal, lower
from noetl.dsl.formatter import format_text
from noetl.dsl.formatter.cst_builder import Dissection
from noetl.dsl.formatter.format import has_faults
from noetl.dsl.formatter.scan import Scan, UnsupportedError
from noetl.dsl.formatter.write import Writer
from noetl.dsl.reading.nodes import Entry, MapNode, Rewritten, Source, plain
from noetl.dsl.reading.parse import Document, parse
from noetl.dsl.tree.normalize import normalize, tree
from noetl.dsl.upgrade.leaves import Leaves
from noetl.dsl.upgrade.rebuild import Rebuilder

API_VERSION: Final = "noetl.io/v10"
_NOT_PROVED: Final = "The new text would not have the same meaning and comments. Please report it."
_SHARED: Final = "It shares parts by anchors (`&`) that no longer mean the same everywhere. Write these parts out."
_ALIAS: Final = re.compile(r"(?m)(?:^|[\s\[{,:-])\*\w")
_ODD_BREAKS: Final = re.compile("[\r\x85\u2028\u2029]")


class Upgrade(Struct, frozen=True):
    """The text in today's form, what was changed, and why it was not."""

    text: str
    source: Source
    changes: tuple[Change, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    problem: str = ""  # why the text is as it was

    @property
    def is_done(self) -> bool:
        return bool(self.changes) and not self.problem


def upgrade(text: str, file: str = "<playbook>") -> Upgrade:
    """Return a playbook in today's form; the same text if it cannot change."""
    before = parse(text.replace("\r\n", "\n"), file)
    source = before.source
    if has_faults(before):
        return Upgrade(text, source, problem="It cannot be read; `noetl validate` says why.")
    lowered = lower(before)
    left = any(finding.form for finding in findings(lowered.root, {}))
    if lowered.refusals or left:
        return Upgrade(text, source, refusals=lowered.refusals, problem="A form in it has no equivalent today.")
    if not lowered.changes:
        return Upgrade(text, source)
    root = lowered.root
    assert isinstance(root, MapNode)
    if _ODD_BREAKS.search(source.text):
        return Upgrade(text, source, problem="It has line breaks other than LF and CRLF.")
    made = _as_json(source.text, root) or _as_yaml(before, root)
    if made is None:
        return Upgrade(text, source, problem="Its YAML has a rare form, which the formatter leaves alone too.")
    if not _is_proved(before, lowered, made):
        return Upgrade(text, source, problem=_SHARED if _ALIAS.search(source.text) else _NOT_PROVED)
    return Upgrade(made.replace("\n", "\r\n") if "\r\n" in text else made, source, lowered.changes)


def _as_json(text: str, root: MapNode) -> str | None:
    """Return the new text of a playbook in JSON; None for YAML."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    data = plain(root)
    data["apiVersion"] = API_VERSION
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _as_yaml(document: Document, root: MapNode) -> str | None:
    text = document.source.text
    try:
        scan = Scan(text)
        written = document.root
        assert isinstance(written, MapNode)
        leaves = Leaves(text)
        made = Rebuilder(written, Dissection(scan).root, leaves).root(_of_today(root))
        writer = Writer(leaves.text)
        writer.verbatim(scan.prologue)
        writer.root(made)
        writer.verbatim(scan.epilogue)
        return format_text(writer.finish(), document.source.file)
    except (UnsupportedError, YAMLError):
        return None


def _of_today(root: MapNode) -> MapNode:
    """Return the root with today's version of the language."""
    entries = []
    for entry in root.entries:
        value = entry.value
        if entry.key.text == "apiVersion":
            value = Rewritten(value.start, value.end, API_VERSION, API_VERSION, "", origin=value)
        entries.append(Entry(entry.key, value))
    return MapNode(root.start, root.end, tuple(entries), root.flow)


def _is_proved(before: Document, lowered: Lowered, made: str) -> bool:
    """Return whether a new text has the same tree and comments, and no older form."""
    after = parse(made)
    if has_faults(after) or lower(after).changes or tree(lowered.root) != normalize(after):
        return False
    try:
        return Scan(before.source.text).comment_texts() == Scan(made).comment_texts()
    except (UnsupportedError, YAMLError):
        return False
