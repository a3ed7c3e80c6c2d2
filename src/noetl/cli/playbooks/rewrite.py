"""Rewrite playbook files: atomically, or as a diff.

Tested in tests/acceptance/language/test_fmt_cli.py and test_upgrade_cli.py.
"""

from __future__ import annotations

import os
import tempfile
from difflib import unified_diff
from pathlib import Path

from noetl.cli.arguments.files import FileProblem
from noetl.cli.runtime.terminal import echo_document


def print_diff(name: str, before: bytes, after: bytes, word: str) -> None:
    """Print the difference; `word` says what was done to the new text."""
    old, new = (text.decode("utf-8").splitlines(keepends=True) for text in (before, after))
    for line in unified_diff(old, new, name, f"{name} ({word})"):
        echo_document(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")


def replace_file(path: Path, content: bytes, problems: list[FileProblem]) -> None:
    """Replace a file atomically, keeping its permissions and links."""
    target = path.resolve()
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(target.stat().st_mode & 0o7777)
        Path(temporary).replace(target)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        problems.append(FileProblem(f"Cannot write {path}: {error.strerror or error}", fatal=True))
