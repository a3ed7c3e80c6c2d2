"""Corpus of playbooks: good ones, and broken ones with expected diagnostics.

A broken file says what it expects in its first lines: `# expect: NOE201 14:11`, one line per diagnostic. A JSON playbook,
which has no comments, has them in a file of the same name that ends in `.expect`.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent
_EXPECT = re.compile(r"^(?:#\s*)?expect:\s*(NOE\d{3})\s+(\d+):(\d+)", re.MULTILINE)


def files(part: str) -> list[Path]:
    """Return the playbooks of `good` or `broken`, in order."""
    return sorted(path for path in (FOLDER / part).rglob("*") if path.suffix in (".yaml", ".yml", ".json"))


def name(path: Path) -> str:
    return str(path.relative_to(FOLDER))


def expected(path: Path) -> list[tuple[str, int, int]]:
    """Return the diagnostics that a broken playbook expects, in order of position."""
    beside = path.with_suffix(path.suffix + ".expect")
    text = (beside if beside.exists() else path).read_bytes().decode("utf-8", "replace")
    found = ((code, int(line), int(column)) for code, line, column in _EXPECT.findall(text))
    return sorted(found, key=lambda item: (item[1], item[2], item[0]))
